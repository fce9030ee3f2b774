#include "recorder/tracer/runtime/threads.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/inputs.h"
#include "recorder/tracer/runtime/leave.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/park.h"
#include "recorder/tracer/runtime/program_memory.h"
#include "recorder/tracer/runtime/signal_frame.h"
#include "recorder/tracer/runtime/signal_mask.h"
#include "recorder/tracer/runtime/signals.h"
#include "recorder/tracer/runtime/translate.h"
#include "recorder/tracer/runtime/versions.h"

extern "C" {
// In entries.S. Makes a call that returns in two threads, of which the new one
// goes on in its own state, on its own stack.
[[gnu::visibility("hidden")]] uint64_t tracer_clone(
    uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
    clew::tracer::ThreadState* child);
// Gives back the thread's slot and place, and ends it without its stack, by the
// call `number`.
[[gnu::visibility("hidden"), noreturn]] void tracer_end_thread(
    std::atomic<clew::tracer::SlotUse>* use, clew::tracer::SlotUse ended,
    std::atomic<uint32_t>* is_place_taken, uint64_t status, uint64_t number);
}

namespace clew::tracer {
namespace {

// What one of the calls asks for, as clone3 says it.
struct Request {
  uint64_t flags = 0;
  uint64_t stack = 0;  // the new stack pointer; 0: the same
  uint64_t clear_tid = 0;
};

// What clone3 is given; the program's stays as it is.
struct CloneArgs {
  explicit CloneArgs(const std::array<uint64_t, 6>& arguments)
      : bytes(std::min<uint64_t>(arguments[1], sizeof args)) {
    std::copy_n(reinterpret_cast<const uint8_t*>(arguments[0]), bytes,
                reinterpret_cast<uint8_t*>(&args));
  }

  clone_args args = {};
  uint64_t bytes;
};

// The word that the kernel clears when the thread ends; 0: none.
uint64_t ClearTid(uint64_t flags, uint64_t child_tid) {
  return (flags & CLONE_CHILD_CLEARTID) != 0 ? child_tid : 0;
}

Request RequestOf(uint64_t number, const std::array<uint64_t, 6>& arguments) {
  switch (number) {
    case SYS_fork:
      return {};
    case SYS_vfork:
      return {.flags = CLONE_VM | CLONE_VFORK};
    case SYS_clone:
      return {arguments[0], arguments[1], ClearTid(arguments[0], arguments[3])};
    default: {
      const clone_args asked = CloneArgs(arguments).args;
      return {asked.flags, asked.stack + asked.stack_size,
              ClearTid(asked.flags, asked.child_tid)};
    }
  }
}

ThreadSlot& SharedSlot(Runtime& runtime, uint32_t number) {
  return *runtime.Shared<ThreadSlot>(kThreadsAt + number * kSlotBytes);
}

// One more is in use than the number says, if not more are.
void CountUsed(std::atomic<uint32_t>& count, uint32_t number) {
  uint32_t used = count.load();
  while (used <= number && !count.compare_exchange_weak(used, number + 1)) {
  }
}

// Takes a slot that is free: one that was used before, or a new one.
uint32_t TakeSlot(Runtime& runtime) {
  for (uint32_t number = 0; number < kThreadsMax; ++number) {
    SlotUse use = SlotUse::kFree;
    if (SharedSlot(runtime, number)
            .use.compare_exchange_strong(use, SlotUse::kThread)) {
      CountUsed(runtime.shared->slots, number);
      return number;
    }
  }
  Stop(runtime, Fault::kTooManyThreads, kThreadsMax);
}

uint64_t AddrOfPlace(const Runtime& runtime, uint32_t place) {
  return AddrOf(&StateAt(runtime, place));
}

uint32_t PlaceOf(ThreadState& thread) {
  return static_cast<uint32_t>(
      (AddrOf(&thread) - RuntimeOf(thread).shared->places.threads) /
      kThreadBytes);
}

// Takes memory for a thread, which another one may have had. The program may
// have mapped something where it would be.
uint32_t TakePlace(Runtime& runtime) {
  for (uint32_t number = 0; number < kThreadsMax; ++number) {
    Place& place = runtime.thread_places[number];
    if (place.is_taken.exchange(1) != 0) {
      continue;
    }
    const uint64_t at = AddrOfPlace(runtime, number);
    const uint64_t mapped =
        place.is_mapped.load() != 0
            ? at
            : MapZeros(at, kThreadBytes, PROT_READ | PROT_WRITE);
    if (mapped == at) {
      place.is_mapped.store(1);
      CountUsed(runtime.places_used, number);
      return number;
    }
    if (mapped != static_cast<uint64_t>(-EEXIST)) {
      Stop(runtime, Fault::kNoMemory, -mapped);
    }
  }
  Stop(runtime, Fault::kTooManyThreads, kThreadsMax);
}

void FreeSlot(Runtime& runtime, uint32_t number) {
  SharedSlot(runtime, number).use.store(SlotUse::kFree);
}

// Maps the pages of a slot at `at`, too.
// Source: mremap(2), an old_size of 0.
void MapSlot(Runtime& runtime, uint32_t number, uint64_t at) {
  const uint64_t mapped =
      Call(SYS_mremap, AddrOf(&SharedSlot(runtime, number)), 0, kSlotBytes,
           MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (IsError(mapped)) {
    Stop(runtime, Fault::kNoMemory, -mapped);
  }
}

// In a new process: the other threads are not there.
void KeepPlaceOf(ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  const uint32_t own = PlaceOf(thread);
  for (uint32_t number = 0; number < kThreadsMax; ++number) {
    runtime.thread_places[number].is_taken.store(number == own ? 1 : 0,
                                                 std::memory_order_relaxed);
  }
}

// Likewise: what it translates from here on is its own.
void BeginSpace(Runtime& runtime) {
  runtime.is_forgetting.store(0);  // it was another thread
  const uint32_t number = runtime.shared->spaces.fetch_add(1) + 1;
  if (number >= kSpacesMax) {
    Stop(runtime, Fault::kTooManyProcesses, number);
  }
  runtime.Shared<Space>(kSpacesAt)[number] = {
      runtime.space, static_cast<uint32_t>(runtime.version.load())};
  runtime.space = number;
}

// The program's registers behind the call, in what it makes.
void SetChild(ThreadState& child, const ThreadState& parent,
              const Request& request) {
  child.gpr = parent.gpr;
  child.gpr[kRax] = 0;
  if (request.stack != 0) {
    child.gpr[kRsp] = request.stack;
  }
  child.rflags = parent.rflags;
  child.tell.clear_tid = request.clear_tid;
  const bool shares_memory = (request.flags & CLONE_VM) != 0;
  child.tell.is_recorded = shares_memory ? parent.tell.is_recorded : 0;
  child.tell.is_child =
      (request.flags & CLONE_THREAD) == 0 ? 1 : parent.tell.is_child;
  child.resume = parent.gpr[kRcx];
  constexpr uint64_t kSharesAndWaits = CLONE_VM | CLONE_VFORK;
  child.is_vfork = (request.flags & kSharesAndWaits) == kSharesAndWaits;
}

// A thread, or a process that shares all memory.
uint64_t CloneThread(ThreadState& thread, uint64_t number,
                     const std::array<uint64_t, 6>& arguments,
                     const Request& request) {
  Runtime& runtime = RuntimeOf(thread);
  // A new thread has the state of the old one for some instructions.
  const SignalsBlocked blocked(thread);
  if (thread.signals.is_holding != 0) {
    return kNotMade;
  }
  const uint32_t slot = TakeSlot(runtime);
  ThreadState& child = BeginThread(runtime, slot);
  Place& place = runtime.thread_places[PlaceOf(child)];
  SetChild(child, thread, request);
  BeginSignals(child, thread, request.flags);
  // Signals come once it has begun.
  child.signals.is_holding = 1;
  child.signals.held_mask = blocked.mask();
  const uint64_t stack = child.runtime_stack;
  uint64_t result = 0;
  if (number == SYS_clone3) {
    CloneArgs asked(arguments);
    asked.args.stack = stack - kStackBytes;
    asked.args.stack_size = kStackBytes;
    result = tracer_clone(number, AddrOf(&asked.args), asked.bytes,
                          arguments[2], arguments[3], arguments[4], &child);
  } else {
    const uint64_t flags =
        number == SYS_vfork ? request.flags | SIGCHLD : request.flags;
    result = tracer_clone(SYS_clone, flags, stack, arguments[2], arguments[3],
                          arguments[4], &child);
  }
  if (IsError(result)) {
    FreeSlot(runtime, slot);
    place.is_taken.store(0);
  } else if ((request.flags & CLONE_VFORK) != 0) {
    // It has ended, or runs another program in memory of its own.
    SharedSlot(runtime, slot).use.store(SlotUse::kEnded);
    place.is_taken.store(0);
  }
  return result;
}

// A process with memory of its own: a copy, but for the slot, which the parent
// goes on to use.
uint64_t CloneProcess(ThreadState& thread, uint64_t number,
                      const std::array<uint64_t, 6>& arguments,
                      const Request& request) {
  Runtime& runtime = RuntimeOf(thread);
  const SignalsBlocked blocked(thread);
  if (thread.signals.is_holding != 0) {
    return kNotMade;
  }
  const uint32_t number_of_slot = TakeSlot(runtime);
  ThreadSlot& slot = SharedSlot(runtime, number_of_slot);
  slot.state = thread;
  SetChild(slot.state, thread, request);
  const bool leaves = IsRecorded(thread);
  slot.state.tell.is_leaving = leaves ? 1 : 0;
  thread.tell.is_forking = 1;
  // In the child nobody else has it.
  runtime.lock.Take();
  uint64_t result = 0;
  if (number == SYS_clone3) {
    // The runtime goes on on its own stack, which the child has a copy of.
    CloneArgs asked(arguments);
    asked.args.flags = request.flags;
    asked.args.stack = 0;
    asked.args.stack_size = 0;
    result = Call(number, AddrOf(&asked.args), asked.bytes);
  } else if (number == SYS_clone) {
    result = Call(number, request.flags, 0, arguments[2], arguments[3],
                  arguments[4]);
  } else {
    result = Call(SYS_clone, request.flags | SIGCHLD);
  }
  if (!IsError(result) && !leaves) {
    runtime.shares_tables = true;
  }
  if (result == 0) {
    MapSlot(runtime, number_of_slot, AddrOf(&thread));
    KeepPlaceOf(thread);
    BeginSpace(runtime);
  }
  runtime.lock.Release();
  thread.tell.is_forking = 0;
  if (IsError(result)) {
    FreeSlot(runtime, number_of_slot);
  } else if (result == 0) {
    BeginProgram(thread);
  }
  return result;
}

}  // namespace

ThreadState& BeginThread(Runtime& runtime, uint32_t slot) {
  const uint64_t at = AddrOfPlace(runtime, TakePlace(runtime));
  MapSlot(runtime, slot, at);
  auto& thread = *reinterpret_cast<ThreadState*>(at);
  LeaveProgram(thread);
  thread.tell = {};
  thread.log_records = runtime.shared->log_registers != 0 ? 1 : kBatchRecords;
  thread.self = &thread;
  thread.runtime = &runtime;
  thread.runtime_stack = at + kStackAt + kStackBytes;
  return thread;
}

bool IsClone(uint64_t number) {
  return number == SYS_clone || number == SYS_clone3 || number == SYS_fork ||
         number == SYS_vfork;
}

uint64_t Clone(ThreadState& thread, uint64_t number,
               const std::array<uint64_t, 6>& arguments) {
  if (number == SYS_clone3 &&
      !CanRead(arguments[0],
               std::min<uint64_t>(arguments[1], sizeof(clone_args)))) {
    return static_cast<uint64_t>(-EFAULT);
  }
  Request request = RequestOf(number, arguments);
  constexpr uint64_t kVfork = CLONE_VM | CLONE_VFORK;
  if (IsRecorded(thread) && RuntimeOf(thread).shared->hands_over != 0 &&
      (request.flags & (kVfork | CLONE_THREAD)) == kVfork) {
    request.flags &= ~uint64_t{CLONE_VM};
  }
  WakeRecorder(*RuntimeOf(thread).shared);  // which hears of what is made
  return (request.flags & CLONE_VM) != 0
             ? CloneThread(thread, number, arguments, request)
             : CloneProcess(thread, number, arguments, request);
}

void BeginProgram(ThreadState& thread) {
  ThreadSlot& slot = SlotOf(thread);
  slot.process = static_cast<int32_t>(Call(SYS_getpid));
  slot.space = RuntimeOf(thread).space;
  slot.begun_tsc = LogTime(RuntimeOf(thread));
  __atomic_store_n(&slot.tid, static_cast<int32_t>(Call(SYS_gettid)),
                   __ATOMIC_RELEASE);
  if (thread.tell.is_leaving != 0) {
    Park(thread, Parked::kLeaves, thread.resume);
    Leave(thread);  // nobody has it do so
  }
  BeginAt(thread, thread.resume);
}

void BeginAt(ThreadState& thread, uint64_t addr) {
  Runtime& runtime = RuntimeOf(thread);
  EnterProgram(thread);
  uint32_t fragment = 0;
  {
    const Locked locked(runtime.lock);
    TakeVersion(thread);
    fragment = FragmentAt(runtime, addr);
  }
  BeginLog(thread, fragment);
  GoOn(thread, fragment, addr);
}

void EndThread(ThreadState& thread, uint64_t number, uint64_t status) {
  if (Parks(thread)) {
    Park(thread, Parked::kExit, thread.last_call);
  }
  // A handler would use what is another thread's.
  const SignalsBlocked blocked(thread);
  if (thread.signals.is_holding != 0) {
    return;
  }
  if (TellsInputs(thread)) {
    TellEnd(thread, BeforeCall(thread, number, {status}));
  }
  Flush(thread);
  // The parent of a vfork gives both back.
  std::atomic<uint32_t> nothing;
  std::atomic<SlotUse> no_use;
  ThreadSlot& slot = SlotOf(thread);
  tracer_end_thread(
      thread.is_vfork ? &no_use : &slot.use,
      IsRead(thread) ? SlotUse::kEnded : SlotUse::kFree,
      thread.is_vfork
          ? &nothing
          : &RuntimeOf(thread).thread_places[PlaceOf(thread)].is_taken,
      status, number);
}

extern "C" void tracer_on_child(ThreadState* thread) {
  const uint64_t addr = thread->resume;
  BeginSignalStack(*thread);
  BeginProgram(*thread);
  LetIn(*thread, addr);
}

}  // namespace clew::tracer
