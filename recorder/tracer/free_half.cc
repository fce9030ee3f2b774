#include "recorder/tracer/free_half.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <x86intrin.h>

#include <algorithm>
#include <utility>

#include "recorder/native/start_description.h"
#include "recorder/tracer/leave_runtime.h"

namespace clew::tracer {
namespace {

using Stopped = FreeThreads::Stopped;

// One that may make calls: that stands in the runtime if there is one, so that
// none is interrupted. 0: there is none.
Tid ChooseThread(std::map<Tid, FreeThreads::Thread>& threads) {
  Tid chosen(0);
  for (const auto& [tid, thread] : threads) {
    if (thread.stopped == Stopped::kParked) {
      return tid;
    }
    if (thread.stopped == Stopped::kInCall) {
      chosen = tid;
    }
  }
  return chosen;
}

// None comes to `thread` meanwhile.
template <class Do>
Status WithoutSignals(TracedProcess& process, Tid thread, Do what) {
  CLEW_ASSIGN_OR_RETURN(mask, process.SignalMask(thread));
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, UINT64_MAX));
  const Status done = what();
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, mask));
  return done;
}

}  // namespace

Result<int64_t> FreeHalves::Call(Tid thread, uint64_t number,
                                 const std::array<uint64_t, 6>& args) {
  return state_.process.MakeCall(
      thread, TraceeAddr(shared_.header().places.image + kCallAt), number,
      args);
}

Status FreeHalves::WaitForCopies(Tid caller) {
  std::vector<int32_t> left;
  for (const int32_t copy : copies_) {
    CLEW_ASSIGN_OR_RETURN(
        result, Call(caller, SYS_wait4,
                     {static_cast<uint64_t>(copy), 0, __WALL | WNOHANG}));
    if (result == 0) {  // it has not ended
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
  const Tid caller = ChooseThread(threads_.all());
  if (caller == Tid(0)) {
    return Unsupported("no thread of the program can be stopped");
  }
  CLEW_RETURN_IF_ERROR(WithoutSignals(
      state_.process, caller, [&] { return DescribeMemory(caller, start); }));
  start.tsc = __rdtsc();
  return start;
}

Status FreeHalves::DescribeMemory(Tid caller, RecordingRing::Start& start) {
  CLEW_RETURN_IF_ERROR(WaitForCopies(caller));
  CLEW_ASSIGN_OR_RETURN(brk, Call(caller, SYS_brk, {}));
  start.brk = static_cast<uint64_t>(brk);
  CLEW_ASSIGN_OR_RETURN(regions, program_.RegionsNow(start.brk));
  start.regions = std::move(regions);
  CLEW_ASSIGN_OR_RETURN(memory,
                        MemoryCopy::Make(state_.process, caller, shared_));
  copies_.push_back(memory.process());
  start.memory = std::move(memory);
  return {};
}

Status FreeHalves::Reap(Tid thread) {
  return copies_.empty() ? Status()
                         : WithoutSignals(state_.process, thread, [&] {
                             return WaitForCopies(thread);
                           });
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
  CLEW_ASSIGN_OR_RETURN(now, state_.process.Registers(tid));
  described.start = recorder::DescribeRegisters(
      tid, ProgramRegisters(
               state, now,
               described.call ? state.last_call : state.signals.boundary));
  CLEW_ASSIGN_OR_RETURN(extended, state_.process.ExtendedState(tid));
  described.start.xsave = std::move(extended);
  return described;
}

}  // namespace clew::tracer
