#include "recorder/tracer/free/free_halves.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <x86intrin.h>

#include <algorithm>
#include <utility>

#include "recorder/native/start_description.h"
#include "recorder/tracer/calls_in_program.h"
#include "recorder/tracer/leave_runtime.h"

namespace clew::tracer {
namespace {

using Stopped = FreeThreads::Stopped;
using std::chrono::milliseconds;

// How long threads may take to stop, and how long it is before that is tried
// again.
constexpr milliseconds kHalfWithin(1'000);
constexpr milliseconds kAgainAfter(100);

}  // namespace

Status FreeHalves::BeginIfFull() {
  const Clock::time_point began = Clock::now();
  if (!ring_.IsFull() || began < next_) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(are_stopped, Stop());
  if (state_.end || state_.replaced) {
    return {};
  }
  if (!are_stopped) {
    next_ = Clock::now() + kAgainAfter;
    if (ring_.IsOverdue()) {
      state_.limit->Drop("the program's threads could not be stopped");
    }
    return {};
  }
  auto start = Describe();
  CLEW_ASSIGN_OR_RETURN(since, stops_.GoOn());
  NoteStop(Clock::now() - began);
  if (!start) {
    state_.limit->Drop(start.error().message);
    return {};
  }
  return Write(std::move(*start), since);
}

// Returns whether they are stopped; else they go on. One that another process
// has the memory of, which nobody traces, cannot be.
Result<bool> FreeHalves::Stop() {
  if (threads_.HasChild()) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(are_stopped, stops_.StopAll(false, kHalfWithin));
  if (!are_stopped && !state_.end && !state_.replaced) {
    CLEW_RETURN_IF_ERROR(stops_.GoOn());
  }
  return are_stopped;
}

void FreeHalves::NoteStop(Clock::duration stopped) {
  const auto us = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(stopped).count());
  ++use_.halves;
  use_.stopped_us += us;
  use_.stopped_us_max = std::max(use_.stopped_us_max, us);
}

// `since`: since when each thread goes on.
Status FreeHalves::Write(RecordingRing::Start start,
                         const std::map<Tid, uint64_t>& since) {
  for (const RecordingRing::Thread& thread : start.threads) {
    FreeThread& log = *threads_.Find(thread.native->tid)->log;
    if (thread.call) {
      log.StopInCall(*thread.call, start.tsc);
    } else {
      log.StopAt(thread.start.rip.as_int());
    }
  }
  CLEW_RETURN_IF_ERROR(ring_.BeginHalf(std::move(start)));
  for (const auto& [tid, tsc] : since) {
    threads_.Find(tid)->log->BeginAnew(tsc);
  }
  return {};
}

Status FreeHalves::Finish(recorder::Outcome& outcome) {
  outcome.ring = use_;
  CLEW_RETURN_IF_ERROR(ring_.Join(outcome));
  return ring_.DropAll();
}

Status FreeHalves::End(Tid thread) {
  CLEW_RETURN_IF_ERROR(ring_.DropAll());
  if (copies_.empty()) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(memory, recorder::GuestMemory::OpenOf(thread.as_int()));
  CLEW_ASSIGN_OR_RETURN(calls,
                        CallsInProgram::Begin(state_.process, memory, thread));
  for (const int32_t copy : copies_) {
    (void)calls.Make("wait", SYS_wait4,  // it may have been, by the program
                     {static_cast<uint64_t>(copy), 0, __WALL | WNOHANG});
  }
  copies_.clear();
  return {};
}

Status FreeHalves::WaitForCopies(Tid caller, FreeThreads::Thread& thread) {
  std::vector<int32_t> left;
  for (const int32_t copy : copies_) {
    CLEW_ASSIGN_OR_RETURN(call, stops_.MakeCall(caller, thread, SYS_wait4,
                                                {static_cast<uint64_t>(copy), 0,
                                                 __WALL | WNOHANG}));
    if (call.result == 0) {  // it has not ended
      left.push_back(copy);
    }
  }
  copies_ = std::move(left);
  return {};
}

Result<RecordingRing::Start> FreeHalves::Describe() {
  RecordingRing::Start start;
  for (auto& [tid, thread] : threads_.all()) {
    if (thread.stopped != Stopped::kNot) {
      CLEW_ASSIGN_OR_RETURN(described, DescribeThread(thread));
      start.threads.push_back(std::move(described));
    }
  }
  const auto caller = std::ranges::find_if(
      threads_.all(),
      [](const auto& each) { return each.second.stopped == Stopped::kParked; });
  if (caller == threads_.all().end()) {
    return Unsupported("no thread of the program can be stopped");
  }
  CLEW_RETURN_IF_ERROR(DescribeMemory(caller->first, caller->second, start));
  start.tsc = __rdtsc();
  return start;
}

Status FreeHalves::DescribeMemory(Tid caller, FreeThreads::Thread& thread,
                                  RecordingRing::Start& start) {
  CLEW_RETURN_IF_ERROR(WaitForCopies(caller, thread));
  CLEW_ASSIGN_OR_RETURN(brk, stops_.MakeCall(caller, thread, SYS_brk, {}));
  start.brk = static_cast<uint64_t>(brk.result);
  CLEW_ASSIGN_OR_RETURN(regions, program_.RegionsNow(start.brk));
  start.regions = std::move(regions);
  CLEW_ASSIGN_OR_RETURN(memory, MemoryCopy::Make(stops_, caller, thread));
  copies_.push_back(memory.process());
  start.memory = std::move(memory);
  return {};
}

Result<RecordingRing::Thread> FreeHalves::DescribeThread(
    FreeThreads::Thread& thread) {
  const Tid tid = thread.native->tid;
  const ThreadState& state = threads_.StateOf(thread);
  RecordingRing::Thread described = {.native = thread.native};
  if (thread.stopped == Stopped::kInCall) {
    described.call = threads_.NoteCall(thread);
    thread.native->call.reset();
  }
  const bool is_parked = thread.stopped == Stopped::kParked;
  if (is_parked) {
    CLEW_RETURN_IF_ERROR(stops_.Halt(tid, thread));
  }
  CLEW_ASSIGN_OR_RETURN(now, state_.process.Registers(tid));
  described.start = recorder::DescribeRegisters(
      tid, ProgramRegisters(
               state, now,
               described.call ? state.last_call : state.signals.boundary));
  CLEW_ASSIGN_OR_RETURN(extended, state_.process.ExtendedState(tid));
  described.start.xsave = std::move(extended);
  if (is_parked) {
    CLEW_RETURN_IF_ERROR(state_.process.Continue(tid, 0));
  }
  return described;
}

}  // namespace clew::tracer
