#ifndef CLEW_RECORDER_BPF_CALL_ASSEMBLER_H_
#define CLEW_RECORDER_BPF_CALL_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "recorder/bpf/event_parser.h"
#include "recorder/bpf/input_event.h"

namespace clew::recorder::bpf {

// Puts events of the ring together: pieces of memory to their call, calls that
// a signal interrupted to what became of them. Sees to it that no unit of a
// thread is missing unsaid: where the numbers in the events do not add up,
// kRawBroken is told.
//
// A call that asks to be restarted is handed on only with what comes next in
// its thread, since that decides what the program sees; signals without a
// handler, which change nothing, may come before it.
//
// Not thread-safe. What a thread needed is kept for the next one.
class CallAssembler {
 public:
  // More bytes of one unit are broken: call_bytes_max is what the kernel's side
  // was told.
  explicit CallAssembler(uint64_t call_bytes_max)
      : call_bytes_max_(call_bytes_max) {}

  // `event` has been checked. Errors are those of `sink`.
  [[nodiscard]] Status Take(const RawEvent& event, InputSink& sink);
  // Nothing more comes; this is what the kernel's side keeps of `thread`.
  [[nodiscard]] Status Finish(uint32_t thread, const RawThread& rest,
                              InputSink& sink);
  // What Finish was not called for.
  [[nodiscard]] Status FinishAll(InputSink& sink);

  // Units whose numbers did not add up.
  uint64_t broken() const { return broken_; }

 private:
  struct Piece {
    uint64_t addr = 0;
    size_t offset = 0;
    size_t size_bytes = 0;
    bool output = false;
  };
  // Memory of one unit, and the file that it maps.
  struct Memory {
    std::vector<std::byte> bytes;
    std::vector<Piece> pieces;
    std::string path;  // as far as its names have come
    std::optional<uint64_t> inode;
    size_t taken = 0;  // events of all this
    void Clear();
    std::span<const std::byte> BytesOf(const Piece& piece) const {
      return std::span(bytes).subspan(piece.offset, piece.size_bytes);
    }
  };
  struct Thread {
    ThreadName who;
    uint64_t sequence = 0;         // of the last unit
    uint64_t memory_sequence = 0;  // of the unit that `memory` belongs to
    bool overflowed = false;       // `memory` was to be more than may be
    Memory memory;
    bool holds = false;  // a call that waits for what is next
    RawCall held = {};
    Memory held_memory;
  };
  using Threads = std::unordered_map<uint32_t, Thread>;

  Thread& Find(const RawHead& head);
  void Release(uint32_t thread);
  void TakePiece(const PieceEvent& event);
  void TakeFile(const PieceEvent& event, Thread& thread);
  Status TakeUnit(Thread& thread, const RawHead& head, const RawSignal* signal,
                  InputSink& sink);
  bool LacksMemory(Thread& thread, const RawHead& head, uint32_t pieces);
  Status TakeCall(const RawCall& call, InputSink& sink);
  Status TakeSignal(const RawSignal& signal, InputSink& sink);
  Status TakeEnd(const RawEnd& end, InputSink& sink);
  enum class Next : uint8_t { kUnit, kEnd, kNobodyKnows };
  // With `signal` where the next unit is one.
  Status Settle(Thread& thread, Next next, const RawSignal* signal,
                InputSink& sink);
  // Fills writes_.
  void ListWrites(const Memory& memory);
  Status HandOn(const ThreadName& who, const RawCall& call,
                const Memory& memory, InputSink& sink);

  uint64_t call_bytes_max_;
  uint64_t broken_ = 0;
  Threads threads_;
  std::vector<Threads::node_type> unused_;
  std::vector<MemoryPiece> writes_;  // room for those of one call
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_CALL_ASSEMBLER_H_
