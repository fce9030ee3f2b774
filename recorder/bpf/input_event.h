#ifndef CLEW_RECORDER_BPF_INPUT_EVENT_H_
#define CLEW_RECORDER_BPF_INPUT_EVENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/units.h"
#include "recorder/bpf/raw_event.h"

namespace clew::recorder::bpf {

// A set of causes for which something is unknown (RawCause).
class Causes {
 public:
  constexpr Causes() = default;
  constexpr explicit Causes(uint32_t bits) : bits_(bits) {}
  constexpr uint32_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(RawCause cause) const { return (bits_ >> cause & 1) != 0; }
  constexpr void Add(RawCause cause) { bits_ |= 1u << cause; }
  constexpr void Add(Causes other) { bits_ |= other.bits_; }
  bool operator==(const Causes&) const = default;

 private:
  uint32_t bits_ = 0;
};

// "the ring was full, the budget was spent"; "nothing" for none.
std::string ToString(Causes causes);
// "the ring was full".
const char* CauseName(RawCause cause);

// Nanoseconds of CLOCK_MONOTONIC, the clock that BPF programs have.
using MonotonicNanos = StrongInt<struct MonotonicNanosTag, uint64_t>;

struct MemoryPiece {
  TraceeAddr addr;
  std::span<const std::byte> bytes;
};

// The file that an mmap maps.
struct MappedFileName {
  std::string_view path;  // in the mount namespace of the process
  uint64_t inode = 0;
};

// A thread of a watched process. Numbers are those of the first PID namespace.
struct ThreadName {
  int32_t process = 0;
  Tid thread;
  bool operator==(const ThreadName&) const = default;
};

struct InputCall {
  ThreadName who;
  uint64_t number = 0;
  std::array<uint64_t, 6> args = {};  // rdi, rsi, rdx, r10, r8, r9
  // As the program sees it. -512: it executes the SYSCALL again (after a
  // handler, if a signal is next). Absent: it never returned.
  std::optional<int64_t> result;
  // What the kernel wrote, in pieces of up to 4 KiB, in the order in which it
  // was read back.
  std::span<const MemoryPiece> writes;
  // Of an mmap, if it is known; its bytes are not among the writes.
  std::optional<MappedFileName> file;
  // FNV-1a of what the call output, if it output anything and all of it was
  // read back.
  std::optional<uint64_t> output_digest;
  uint64_t output_bytes = 0;
  MonotonicNanos entered;  // 0: not seen
  MonotonicNanos left;     // 0: not seen
  // Not empty: what is told is true, but not all that the call did is told.
  Causes unknown;
};

// Whether a signal's action is a handler: 0 is the default one, 1 to ignore it.
constexpr bool IsHandler(uint64_t action) { return action > 1; }

// With which registers a signal's handler begins.
struct HandlerEntry {
  TraceeAddr ip;
  uint64_t rsp = 0;  // where the frame is
  uint64_t rdi = 0;
  uint64_t rsi = 0;
  uint64_t rdx = 0;
  uint64_t rax = 0;
};

struct InputSignal {
  ThreadName who;
  int32_t number = 0;
  uint64_t handler = 0;  // see IsHandler
  TraceeAddr interrupted_ip = {};
  uint64_t interrupted_sp = 0;
  MonotonicNanos at = {};
  // If `unknown` is empty, and there is a handler.
  HandlerEntry entry = {};
  std::span<const MemoryPiece> frame = {};  // what the kernel pushed
  Causes unknown = {};
};

// So many calls and signals of the thread are missing here.
struct InputLoss {
  ThreadName who;
  uint64_t count = 0;
  Causes causes;
};

// What a drain hands on. Events of one thread come in its program order; the
// order between threads means nothing. Spans hold until the function returns.
// An error ends the drain; the event counts as handed on.
class InputSink {
 public:
  virtual ~InputSink() = default;
  [[nodiscard]] virtual Status OnCall(const InputCall& call) = 0;
  [[nodiscard]] virtual Status OnSignal(const InputSignal& signal) = 0;
  [[nodiscard]] virtual Status OnLoss(const InputLoss& loss) = 0;
  // No more of this thread; a new one may get its number.
  [[nodiscard]] virtual Status OnThreadEnd(const ThreadName& who) = 0;
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_INPUT_EVENT_H_
