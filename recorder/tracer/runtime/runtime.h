#ifndef CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_
#define CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "common/x86/layout.h"
#include "recorder/tracer/runtime/code/arena.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/lock.h"
#include "recorder/tracer/shared_layout.h"

namespace clew::tracer {

// Where translated code looks up the target of an indirect transfer, by the low
// bits of its address.
struct LookupEntry {
  uint64_t negated = 0;  // the target's address, less than 0
  uint64_t entry = 0;    // where it is in the cache
};
inline constexpr uint32_t kLookupBits = 18;
// Both are behind the thread's slot.
inline constexpr uint64_t kLookupAt = kSlotBytes;
inline constexpr uint64_t kStackAt =
    kLookupAt + (sizeof(LookupEntry) << kLookupBits);
inline constexpr uint64_t kStackBytes = 64 << 10;
// Where the kernel writes the frame of a signal, of some KiB.
inline constexpr uint64_t kSignalStackAt = kStackAt + kStackBytes;
inline constexpr uint64_t kSignalStackBytes = 64 << 10;
inline constexpr uint64_t kActionsAt = kSignalStackAt + kSignalStackBytes;
inline constexpr uint64_t kActionsBytes = 4096;
static_assert(kActionsAt + kActionsBytes <= kThreadBytes);

// What only this process knows of a fragment; 0: nothing.
struct Translation {
  uint64_t body = 0;  // the copies of its instructions
  // Where it is entered: its check (code_check.h), if it has one, or its body.
  uint64_t entry = 0;
  // Where an indirect transfer enters, which writes the record.
  uint64_t indirect_entry = 0;
  uint32_t first_way_in = 0;  // of the edges that are linked to it
  uint32_t next_on_page = 0;  // with the same hash of the page
  uint32_t insns_at = 0;      // of its copied instructions
  uint8_t insn_count = 0;     // with its end, behind them
  uint8_t program_insns = 0;  // without what is not the program's
  bool dropped = false;       // its code has changed
};

// What only this process knows of an edge; 0: nothing.
struct Way {
  uint64_t jump = 0;  // in the cache, to be linked
  uint64_t exit = 0;  // where it leads until then: into the runtime
  uint32_t next = 0;  // of those that are linked to the same fragment
  bool is_linked = false;
  uint8_t insns = 0;  // of its fragment, up to the branch
};

// Memory for a thread's state, in the order of their addresses.
struct Place {
  std::atomic<uint32_t> is_taken;
  std::atomic<uint32_t> is_mapped;
};

// Where in the copy of its fragment an instruction is, and which register has
// another value there than the program's, which is in the state.
class InsnOffset {
 public:
  InsnOffset() = default;
  // REQUIRES: offset < 8192.
  InsnOffset(uint64_t offset, Register saved)
      : bits_(static_cast<uint16_t>(offset << 3 | saved)) {}
  uint64_t offset() const { return bits_ >> 3; }
  Register saved() const { return Register{static_cast<uint8_t>(bits_ & 7)}; }
  void SetSaved(Register saved) { *this = {offset(), saved}; }

 private:
  uint16_t bits_ = 0;
};
static_assert(sizeof(InsnOffset) == 2);
inline constexpr uint32_t kInsnOffsetsMax = 24 << 20;

// A copy of a few instructions, which runs once (short_block.h).
struct ShortBlock {
  static constexpr size_t kInsnsMax = 64;
  uint64_t entry = 0;
  uint64_t start = 0;
  uint32_t code_bytes = 0;
  uint32_t insn_count = 0;
  bool ends_with_branch = false;
  std::array<InsnOffset, kInsnsMax> insns;
  std::array<uint8_t, kInsnsMax * x86::kInsnBytesMax> code;
};

// Source: x86-64 kernel, include/linux/signal_types.h, struct sigaction.
struct KernelAction {
  uint64_t handler = 0;
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;

  bool has_handler() const { return handler > 1; }  // SIG_DFL, SIG_IGN
};
// What the program wants done at each signal, from 1 on (signal_actions.h).
using Actions = std::array<KernelAction, 65>;

struct ExecutableRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_writable = false;
};

// The runtime of a process, which has nothing else: its image has code alone.
struct Runtime {
  SharedHeader* shared = nullptr;
  // Whoever has it may change what follows.
  Lock lock;
  std::array<Arena, 2> arenas;
  // Of each cache, the fragments in the order of their copies.
  std::array<std::array<uint32_t, kFragmentsMax>, 2> fragments_of_arena;
  std::array<uint32_t, 2> fragment_counts;
  Actions actions;  // of all threads but those that have their own
  std::array<InsnOffset, kInsnOffsetsMax> insns;
  std::atomic<uint32_t> insn_count;
  ShortBlock short_block;
  bool has_bmi2 = false;

  // Fragments by their start: open addressing.
  static constexpr uint32_t kHashBits = 21;
  std::array<uint32_t, 1 << kHashBits> hash;
  std::array<Translation, kFragmentsMax> translations;
  // Those of them that were not dropped, by the page where they start.
  static constexpr uint32_t kPageHashBits = 16;
  std::array<uint32_t, 1 << kPageHashBits> by_page;
  std::array<Way, kEdgesMax> ways;
  std::array<Place, kThreadsMax> thread_places;
  std::atomic<uint32_t> places_used;  // those behind were never
  uint32_t space = 0;
  // Of the code; counts what was dropped.
  std::atomic<uint64_t> version;
  uint64_t version_of_all = 0;  // that each thread has taken, as last looked
  std::atomic<uint32_t> is_forgetting;  // forget.h
  // Another process uses the tables in the shared memory, too.
  bool shares_tables = false;
  // Of the code that was translated.
  std::array<ExecutableRange, 32> executable;
  uint32_t next_executable = 0;

  template <class T>
  T* Shared(uint64_t at) {
    return reinterpret_cast<T*>(AddrOf(shared) + at);
  }
  Fragment& fragment(uint32_t number) {
    return Shared<Fragment>(kFragmentsAt)[number];
  }
  Edge& edge(uint32_t number) { return Shared<Edge>(kEdgesAt)[number]; }
};
static_assert(sizeof(Runtime) <= kRuntimeBytes);

inline bool IsInImage(const Runtime& runtime, uint64_t addr) {
  const Places& places = runtime.shared->places;
  return addr - places.image < places.image_bytes;
}

inline ThreadSlot& SlotOf(ThreadState& thread) {
  return reinterpret_cast<ThreadSlot&>(thread);
}
inline Runtime& RuntimeOf(ThreadState& thread) {
  return *static_cast<Runtime*>(thread.runtime);
}

// The state of the thread that has a place, or had it.
inline ThreadState& StateAt(const Runtime& runtime, uint32_t place) {
  return *reinterpret_cast<ThreadState*>(runtime.shared->places.threads +
                                         place * kThreadBytes);
}

// Where a thread looks for the target of an indirect transfer.
inline LookupEntry& LookupFor(ThreadState& thread, uint64_t target) {
  const uint64_t mask =
      RuntimeOf(thread).has_bmi2 ? (1u << kLookupBits) - 1 : uint64_t{0xffff};
  return reinterpret_cast<LookupEntry*>(AddrOf(&thread) +
                                        kLookupAt)[target & mask];
}

// Goes on in a fragment; where there is none, at the program's own address,
// where the CPU says why: in leaps, when it is stepped over.
void GoOn(ThreadState& thread, uint32_t fragment, uint64_t addr);

// Ends the program, and tells the recorder why.
[[noreturn]] void Stop(Runtime& runtime, Fault fault, uint64_t detail);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_
