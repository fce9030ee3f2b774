#include "recorder/tracer/free/free_stops.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "common/linux/syscall_result.h"

namespace clew::tracer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr useconds_t kLookEveryUs = 50;
// How long a call may take, none of which waits.
constexpr std::chrono::seconds kCallWithin(10);
// How often a thread is looked at that goes on in a call where it waits.
constexpr int kLooksBeforeAsleep = 100;

}  // namespace

Status FreeStops::EndedFromOutside() const {
  const std::string fault = shared_.FaultText();
  return Unsupported(
      "{}", fault.empty() ? "the program was ended from outside" : fault);
}

Result<bool> FreeStops::Look() {
  bool has_stopped = false;
  for (const Tid tid : process_.Threads()) {
    CLEW_ASSIGN_OR_RETURN(is_news, LookAt(tid, threads_.Find(tid)));
    has_stopped = has_stopped || is_news;
    if (state_.replaced) {
      break;
    }
  }
  return has_stopped;
}

Result<bool> FreeStops::LookAt(Tid tid, Thread* thread) {
  if (thread != nullptr && thread->stopped != Stopped::kNot) {
    return false;
  }
  if (thread != nullptr && SharedMemory::IsParked(threads_.SlotOf(*thread))) {
    CLEW_RETURN_IF_ERROR(on_park_(tid, *thread));
    return true;
  }
  CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(tid, false));
  if (stop.kind == TraceeStop::Kind::kRunning) {
    return false;
  }
  CLEW_RETURN_IF_ERROR(on_stop_(tid, stop));
  return true;
}

// What else stops it meanwhile takes back the interruption of a thread that was
// attached to; another one gets its SIGSTOP.
Result<bool> FreeStops::Interrupt(Tid tid, Thread& thread) {
  const Stopped before = thread.stopped;
  CLEW_ASSIGN_OR_RETURN(stop, process_.Interrupt(tid));
  for (;;) {
    if (stop.is_without_signal ||
        (stop.kind == TraceeStop::Kind::kSignal && stop.signal == SIGSTOP)) {
      return thread.stopped == before;
    }
    if (stop.has_ended()) {
      return std::unexpected(EndedFromOutside().error());
    }
    CLEW_RETURN_IF_ERROR(on_stop_(tid, stop));
    if (process_.is_attached()) {
      return false;
    }
    if (thread.stopped != before) {
      CLEW_RETURN_IF_ERROR(process_.Continue(tid, 0));
    }
    CLEW_ASSIGN_OR_RETURN(next, process_.Wait(tid, true));
    stop = next;
  }
}

Status FreeStops::Halt(Tid tid, Thread& thread) {
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(is_halted, Interrupt(tid, thread));
    if (is_halted) {
      return {};
    }
  }
}

void FreeStops::Release(Thread& thread) {
  thread.stopped = Stopped::kNot;
  SharedMemory::Order(threads_.SlotOf(thread), ParkOrder::kGoOn);
}

Result<FreeStops::Call> FreeStops::MakeCall(
    Tid tid, Thread& thread, uint64_t number,
    const std::array<uint64_t, 6>& args) {
  ThreadSlot& slot = threads_.SlotOf(thread);
  slot.call = {.number = number, .args = args};
  SharedMemory::Order(slot, ParkOrder::kMakeCall);
  Call call;
  const Clock::time_point until = Clock::now() + kCallWithin;
  while (!SharedMemory::IsParked(slot)) {
    if (Clock::now() > until) {
      return Unsupported("thread {} does not make the call {}", tid, number);
    }
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(tid, false));
    if (stop.kind == TraceeStop::Kind::kFork) {
      call.made = stop.new_thread;
      CLEW_RETURN_IF_ERROR(process_.Wait(call.made, true));
      CLEW_RETURN_IF_ERROR(process_.Continue(tid, 0));
    } else if (stop.kind != TraceeStop::Kind::kRunning) {
      CLEW_RETURN_IF_ERROR(on_stop_(tid, stop));
    }
    sched_yield();
  }
  call.result = static_cast<int64_t>(slot.call.result);
  return call;
}

Status FreeStops::StopInCall(Tid tid, Thread& thread) {
  CLEW_ASSIGN_OR_RETURN(is_interrupted, Interrupt(tid, thread));
  if (!is_interrupted) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(tid));
  const auto result = static_cast<int64_t>(registers.rax);
  const bool waits = threads_.StateOf(thread).tell.is_in_call != 0 &&
                     (AsksForRestart(result) || result == -EINTR);
  if (!waits) {
    return process_.Continue(tid, 0);
  }
  thread.stopped = Stopped::kInCall;
  return {};
}

Result<bool> FreeStops::AreStopped(bool for_good) {
  bool are_stopped = true;
  const bool may_interrupt =
      for_good || std::ranges::any_of(threads_.all(), [](const auto& each) {
        return each.second.stopped == Stopped::kParked;
      });
  for (const Tid tid : process_.Threads()) {
    Thread* const thread = threads_.Find(tid);
    if (thread == nullptr) {
      // One that is to go on is not to be left in the runtime.
      const bool goes_on = process_.is_attached() || !for_good;
      are_stopped = are_stopped && process_.IsAsleep(tid) &&
                    (!goes_on || tid == process_.first_thread());
      continue;
    }
    if (thread->leaves) {
      // The kernel keeps the first one until all others have ended.
      are_stopped = are_stopped && tid == process_.first_thread() &&
                    thread->is_read && process_.IsAsleep(tid);
      continue;
    }
    if (may_interrupt && thread->stopped == Stopped::kNot &&
        threads_.StateOf(*thread).tell.is_in_call != 0 &&
        process_.IsAsleep(tid)) {
      CLEW_RETURN_IF_ERROR(StopInCall(tid, *thread));
    }
    are_stopped = are_stopped && thread->stopped != Stopped::kNot;
  }
  return are_stopped;
}

Result<bool> FreeStops::StopAll(bool for_good,
                                std::chrono::milliseconds within) {
  shared_.header().is_stopping.store(1);
  const Clock::time_point until = Clock::now() + within;
  for (;;) {
    CLEW_RETURN_IF_ERROR(threads_.Read());
    CLEW_RETURN_IF_ERROR(Look());
    if (!for_good && (state_.end || state_.replaced)) {
      return false;
    }
    CLEW_ASSIGN_OR_RETURN(are_stopped, AreStopped(for_good));
    if (are_stopped) {
      CLEW_RETURN_IF_ERROR(threads_.Read());
      return true;
    }
    if (Clock::now() > until) {
      return false;
    }
    usleep(kLookEveryUs);
  }
}

Result<std::map<Tid, uint64_t>> FreeStops::GoOn() {
  shared_.header().is_stopping.store(0);
  std::map<Tid, uint64_t> since;
  for (const Stopped how : {Stopped::kInCall, Stopped::kParked}) {
    for (auto& [tid, thread] : threads_.all()) {
      if (thread.stopped == how) {
        since[tid] = __rdtsc();
        if (how == Stopped::kParked) {
          Release(thread);
          continue;
        }
        thread.stopped = Stopped::kNot;
        CLEW_RETURN_IF_ERROR(process_.Continue(tid, 0));
      }
    }
    for (const auto& [tid, tsc] : since) {
      const ThreadState& state = threads_.StateOf(*threads_.Find(tid));
      for (int look = 0; how == Stopped::kInCall && look < kLooksBeforeAsleep &&
                         state.tell.is_in_call != 0 && !process_.IsAsleep(tid);
           ++look) {
        sched_yield();
      }
    }
  }
  return since;
}

}  // namespace clew::tracer
