#ifndef CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_
#define CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "recorder/tracer/runtime/arena.h"
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
static_assert(kStackAt + kStackBytes <= kThreadBytes);

// What only this process knows of a fragment; 0: nothing.
struct Translation {
  uint64_t entry = 0;
  // Where an indirect transfer enters, which writes the record.
  uint64_t indirect_entry = 0;
  uint32_t first_way_in = 0;  // of the edges that are linked to it
  bool dropped = false;       // its code has changed
};

// What only this process knows of an edge; 0: nothing.
struct Way {
  uint64_t jump = 0;  // in the cache, to be linked
  uint64_t exit = 0;  // where it leads until then: into the runtime
  uint32_t next = 0;  // of those that are linked to the same fragment
  bool is_linked = false;
};

// Memory for a thread's state, in the order of their addresses.
struct Place {
  std::atomic<uint32_t> is_taken;
  bool is_mapped;
};

struct ExecutableRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The runtime of a process, which has nothing else: its image has code alone.
struct Runtime {
  SharedHeader* shared = nullptr;
  // Whoever has it may change what follows.
  Lock lock;
  std::array<Arena, 2> arenas;
  bool has_bmi2 = false;

  // Fragments by their start: open addressing.
  static constexpr uint32_t kHashBits = 19;
  std::array<uint32_t, 1 << kHashBits> hash;
  std::array<Translation, kFragmentsMax> translations;
  std::array<Way, kEdgesMax> ways;
  std::array<Place, kThreadsMax> thread_places;
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

inline ThreadSlot& SlotOf(ThreadState& thread) {
  return reinterpret_cast<ThreadSlot&>(thread);
}
inline Runtime& RuntimeOf(ThreadState& thread) {
  return *static_cast<Runtime*>(thread.runtime);
}

// Goes on in a fragment; where there is none, at the program's own address,
// where the CPU says why.
inline void GoOn(ThreadState& thread, uint32_t fragment, uint64_t addr) {
  thread.resume =
      fragment == 0 ? addr : RuntimeOf(thread).translations[fragment].entry;
}

// Ends the program, and tells the recorder why.
[[noreturn]] void Stop(Runtime& runtime, Fault fault, uint64_t detail);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_RUNTIME_H_
