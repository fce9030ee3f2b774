#include "recorder/tracer/runtime/forget.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/park.h"
#include "recorder/tracer/runtime/threads.h"
#include "recorder/tracer/runtime/translate.h"
#include "recorder/tracer/runtime/versions.h"

namespace clew::tracer {
namespace {

constexpr int64_t kLookEveryNs = 50'000;
constexpr uint64_t kAllWaiters = INT32_MAX;
// Of each table and cache, one part of so many is kept back.
constexpr uint32_t kKeptBack = 32;

bool HasRoom(const std::atomic<uint32_t>& used, uint32_t max) {
  return used.load(std::memory_order_relaxed) < max - max / kKeptBack;
}

// REQUIRES: the caller has the runtime's lock.
bool IsFull(const Runtime& runtime) {
  const SharedHeader& shared = *runtime.shared;
  const uint32_t kept = shared.fragments_kept;
  return (kept != 0 && shared.fragments.load() > kept) ||
         !HasRoom(shared.fragments, kFragmentsMax) ||
         !HasRoom(shared.edges, kEdgesMax) ||
         !HasRoom(shared.code_bytes, kCodeBytesMax) ||
         !HasRoom(runtime.insn_count, kInsnOffsetsMax) ||
         std::ranges::any_of(runtime.arenas, [](const Arena& arena) {
           return arena.begin != 0 && !arena.HasRoom(kKeptBack);
         });
}

// Whether the recorder wants all threads to stop.
bool IsPutOff(const SharedHeader& shared) {
  return shared.is_stopping.load() != 0 && HasReader(shared);
}

// Returns false if it is put off.
bool WaitForOthers(Runtime& runtime) {
  bool is_put_off = false;
  ForEachThread(runtime, [&](ThreadState& thread) {
    while (__atomic_load_n(&thread.is_elsewhere, __ATOMIC_SEQ_CST) == 0 &&
           !is_put_off) {
      is_put_off = IsPutOff(*runtime.shared);
      WaitAWhile(AddrOf(&runtime.is_forgetting), 1, kLookEveryNs);
    }
  });
  return !is_put_off;
}

// Likewise.
bool WaitForRecorder(Runtime& runtime) {
  SharedHeader& shared = *runtime.shared;
  const uint32_t slots = shared.slots.load();
  for (uint32_t number = 0; number < slots; ++number) {
    ThreadSlot& slot =
        *runtime.Shared<ThreadSlot>(kThreadsAt + number * kSlotBytes);
    while (slot.batches_read.load() != slot.batches_written.load() &&
           slot.use.load() != SlotUse::kFree && HasReader(shared)) {
      if (IsPutOff(shared)) {
        return false;
      }
      WakeRecorder(shared);
      WaitAWhile(AddrOf(&runtime.is_forgetting), 1, kLookEveryNs);
    }
  }
  return true;
}

template <class T>
void Clear(T& first, uint32_t used, uint32_t max) {
  std::fill_n(&first, std::min(used, max), T());
}

// What the threads that are there, and were, looked up.
void ForgetTargets(Runtime& runtime) {
  const uint32_t places = runtime.places_used.load();
  for (uint32_t place = 0; place < places; ++place) {
    if (runtime.thread_places[place].is_mapped.load() != 0) {
      Call(SYS_madvise, AddrOf(&StateAt(runtime, place)) + kLookupAt,
           kStackAt - kLookupAt, MADV_DONTNEED);
    }
  }
}

// REQUIRES: the caller has the runtime's lock, no thread is in a fragment, and
// nobody else uses the tables.
void Forget(Runtime& runtime) {
  SharedHeader& shared = *runtime.shared;
  const uint32_t fragments = shared.fragments.load();
  const uint32_t edges = shared.edges.load();
  Clear(runtime.fragment(0), fragments, kFragmentsMax);
  Clear(runtime.edge(0), edges, kEdgesMax);
  Clear(runtime.translations[0], fragments, kFragmentsMax);
  Clear(runtime.ways[0], edges, kEdgesMax);
  runtime.hash.fill(0);
  runtime.by_page.fill(0);
  runtime.fragment_counts.fill(0);
  runtime.insn_count.store(0);
  for (Arena& arena : runtime.arenas) {
    if (arena.begin != 0) {
      BeginArena(arena, arena.begin);
    }
  }
  ForgetTargets(runtime);
  shared.fragments.store(1);
  shared.edges.store(1);
  shared.code_bytes.store(0);
  ++runtime.version;
  ++shared.forgotten;
}

// In the thread that is to forget.
void WaitAndForget(Runtime& runtime) {
  if (!WaitForOthers(runtime) || !WaitForRecorder(runtime)) {
    return;
  }
  const Locked locked(runtime.lock);
  if (IsFull(runtime) && MayForget(runtime)) {  // nobody else was quicker
    Forget(runtime);
  }
}

}  // namespace

bool IsToForget(Runtime& runtime) {
  if (!MayForget(runtime)) {
    return false;
  }
  const Locked locked(runtime.lock);
  return IsForgetting(runtime) || IsFull(runtime);
}

void ForgetAt(ThreadState& thread, uint64_t addr) {
  Runtime& runtime = RuntimeOf(thread);
  Flush(thread, BatchEnd::kChanged, addr);
  LeaveProgram(thread);
  if (runtime.is_forgetting.exchange(1) == 0) {
    WaitAndForget(runtime);
    runtime.is_forgetting.store(0);
    WakeAt(AddrOf(&runtime.is_forgetting), kAllWaiters);
  }
  ParkIfAsked(thread, addr);
  BeginAt(thread, addr);
}

void ForgetBetweenLeaps(Runtime& runtime) {
  if (runtime.shared->in_leaps == 0) {
    return;
  }
  const Locked locked(runtime.lock);
  if (IsFull(runtime) && !runtime.shares_tables) {
    Forget(runtime);
  }
}

}  // namespace clew::tracer
