#include "replayer/process_target.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "common/check.h"
#include "common/text/path_names.h"
#include "common/x86/page.h"
#include "follower/describe_run.h"
#include "follower/failure_check.h"
#include "machine/cpu.h"
#include "replayer/arrive.h"
#include "replayer/check_steps.h"
#include "replayer/start_stack.h"

namespace clew::replayer {
Result<std::unique_ptr<ProcessTarget>> ProcessTarget::Open(
    const follower::Recording& recording,
    const std::vector<ScheduleStep>& steps, ProcessTargetOptions options) {
  CLEW_ASSIGN_OR_RETURN(
      session, follower::OpenedRecording::Open(recording, options.limits, {}));
  CLEW_RETURN_IF_ERROR(CheckSteps(steps, session->start()));
  CLEW_ASSIGN_OR_RETURN(index, ScheduleIndex::Create(steps));
  StartStack stack = ReadStartStack(session->start().memory(),
                                    recording.start.initial_stack.as_int());
  if (options.exec_path.empty()) {
    options.exec_path = FileAt(recording.start, stack.entry);
  }
  std::unique_ptr<ProcessTarget> target(
      new ProcessTarget(std::move(session), std::move(index), recording.failure,
                        std::move(options)));
  target->auxv_ = std::move(stack.auxv);
  return target;
}

ProcessTarget::ProcessTarget(std::unique_ptr<follower::OpenedRecording> session,
                             ScheduleIndex index, Failure failure,
                             ProcessTargetOptions options)
    : session_(std::move(session)),
      process_(session_->start()),
      index_(std::move(index)),
      failure_(failure),
      options_(std::move(options)) {
  // Checkpoints copy the sink, so it must not hold more than `this`.
  process_.set_output_sink(
      [this](Tid, int fd, std::span<const std::byte> bytes) {
        if (output_ != nullptr && (fd == 1 || fd == 2)) {
          output_->OnOutput(bytes);
        }
      });
}

std::unique_ptr<ReplayTarget::State> ProcessTarget::Save() const {
  return std::make_unique<Checkpoint>(process_);
}

void ProcessTarget::Load(const State& state) {
  process_ = dynamic_cast<const Checkpoint&>(state).process;
}

Result<RunStop> ProcessTarget::Run(Position until, const StopPoints& points,
                                   bool pass_first) {
  CLEW_CHECK(position() <= until && until <= end(), "run {} to {} of {}",
             position(), until, end());
  std::optional<WatchMonitor> monitor;
  if (!points.watchpoints().empty()) {
    monitor.emplace(points, process_.memory());
  }
  process_.set_observer(monitor ? &*monitor : nullptr);
  RunContext context{points, monitor ? &*monitor : nullptr, pass_first};
  auto stop = RunObserved(until, context);
  process_.set_observer(nullptr);
  return stop;
}

Result<RunStop> ProcessTarget::RunObserved(Position until,
                                           RunContext& context) {
  RunStop stop;
  while (position() < until && stop.end == RunEnd::kPosition) {
    CLEW_RETURN_IF_ERROR(Flush(context, stop));
    if (stop.end != RunEnd::kPosition) {
      break;
    }
    const ScheduleIndex::Place place = PlaceAt(position());
    const uint64_t insns = std::min(until, place.run_end) - position();
    CLEW_ASSIGN_OR_RETURN(ran, RunThread(IndexOf(place.thread),
                                         place.thread_insn + insns, context));
    stop = ran;
  }
  CLEW_RETURN_IF_ERROR(ArriveAtNext(context, stop));
  return stop;
}

// A position's state is that of the moment right before its instruction, with
// what buffers and the kernel do before it done.
Status ProcessTarget::ArriveAtNext(const RunContext& context, RunStop& stop) {
  CLEW_RETURN_IF_ERROR(Flush(context, stop));
  if (position() == end()) {
    return {};
  }
  const Tid next = PlaceAt(position()).thread;
  CLEW_ASSIGN_OR_RETURN(moved, Arrive(process_, IndexOf(next)));
  if (moved && context.monitor != nullptr && stop.end == RunEnd::kPosition) {
    if (const auto hit = context.monitor->Check()) {
      stop = {RunEnd::kWatchpoint, *hit, std::nullopt};
    }
  }
  return {};
}

// The steps of store buffers that come here; a second time they do nothing. All
// are taken, also where one of them stops the run.
Status ProcessTarget::Flush(const RunContext& context, RunStop& stop) {
  for (const ScheduleStep& step : index_.FlushesAt(position())) {
    CLEW_RETURN_IF_ERROR(process_.Take(IndexOf(step.thread), step));
    if (context.monitor != nullptr && stop.end == RunEnd::kPosition) {
      if (const auto hit = context.monitor->Check()) {
        stop = {RunEnd::kWatchpoint, *hit, step.thread};
      }
    }
  }
  return {};
}

Result<RunStop> ProcessTarget::RunThread(size_t thread, uint64_t until,
                                         RunContext& context) {
  if (context.points.empty()) {
    CLEW_RETURN_IF_ERROR(Advance(thread, until));
    return RunStop{};
  }
  RunStop stop;
  while (process_.thread(thread).retired < until &&
         stop.end == RunEnd::kPosition) {
    CLEW_ASSIGN_OR_RETURN(ran, RunBlock(thread, until, context));
    stop = ran;
  }
  return stop;
}

// Runs the rest of the current block, as far as `until`.
Result<RunStop> ProcessTarget::RunBlock(size_t thread, uint64_t until,
                                        RunContext& context) {
  CLEW_ASSIGN_OR_RETURN(moved, Arrive(process_, thread));
  if (moved && context.monitor != nullptr) {
    if (const auto hit = context.monitor->Check()) {
      return RunStop{RunEnd::kWatchpoint, *hit, std::nullopt};
    }
  }
  CLEW_ASSIGN_OR_RETURN(next, process_.NextBlock(thread));
  if (next == nullptr) {
    return CorruptInput("thread {}: the schedule goes on, its stream does not",
                        process_.tid(thread));
  }
  const StreamBlock block = *next;
  const follower::ThreadState& state = process_.thread(thread);
  uint64_t block_end = state.retired + block.insn_count - state.block_done;
  if (context.monitor != nullptr && NextChangesMemory(thread)) {
    block_end = state.retired + 1;  // so that the change has its position
  }
  until = std::min(until, block_end);
  block_ips_.SetCodeVersion(process_.memory().code_version());
  if (context.points.has_breakpoints() &&
      block_ips_.MayStop(block, context.points)) {
    return StepBlock(thread, until, context);
  }
  context.pass_first = false;
  CLEW_RETURN_IF_ERROR(Advance(thread, until));
  if (context.monitor != nullptr) {
    if (const auto hit = context.monitor->Check()) {
      return RunStop{RunEnd::kWatchpoint, *hit, std::nullopt};
    }
  }
  return RunStop{};
}

// The same, one instruction at a time, and learns the block's addresses.
Result<RunStop> ProcessTarget::StepBlock(size_t thread, uint64_t until,
                                         RunContext& context) {
  CLEW_ASSIGN_OR_RETURN(next, process_.NextBlock(thread));
  const StreamBlock block = *next;
  const follower::ThreadState& state = process_.thread(thread);
  const bool whole =
      state.block_done == 0 && state.retired + block.insn_count == until &&
      state.registers.rip == block.ip.as_int() && !block_ips_.Knows(block);
  std::vector<uint64_t> ips;
  while (state.retired < until) {
    const uint64_t ip = state.registers.rip;
    if (!std::exchange(context.pass_first, false) &&
        context.points.HasBreakpoint(ip)) {
      return RunStop{RunEnd::kBreakpoint, {}, {}};
    }
    ips.push_back(ip);
    CLEW_RETURN_IF_ERROR(Advance(thread, state.retired + 1));
    if (context.monitor != nullptr) {
      if (const auto hit = context.monitor->Check()) {
        return RunStop{RunEnd::kWatchpoint, *hit, std::nullopt};
      }
    }
  }
  if (whole) {
    block_ips_.Learn(block, std::move(ips));
  }
  return RunStop{};
}

// Runs until the thread has retired `until` instructions or the observer stops
// it; all else is a divergence.
Status ProcessTarget::Advance(size_t thread, uint64_t until) {
  CLEW_ASSIGN_OR_RETURN(advance, process_.Run(thread, until));
  const auto wrong = follower::WhyNotReached(process_, thread, advance);
  if (!wrong || advance.stop == follower::Advance::Stop::kObserver) {
    return {};
  }
  return CorruptInput("the replay diverges: {}", *wrong);
}

// Whether the kernel may change memory before the thread's next instruction: a
// call returns. (A signal has been delivered by now.)
bool ProcessTarget::NextChangesMemory(size_t thread) const {
  return process_.thread(thread).phase == follower::ThreadPhase::kInCall;
}

std::optional<Tid> ProcessTarget::ThreadAt(Position position) const {
  const auto place = index_.At(position);
  return place ? std::optional(place->thread) : std::nullopt;
}

std::optional<Position> ProcessTarget::LastBefore(Tid thread,
                                                  Position position) const {
  return index_.LastBefore(thread, position);
}

std::optional<Position> ProcessTarget::FirstFrom(Tid thread,
                                                 Position position) const {
  return index_.FirstFrom(thread, position);
}

ScheduleIndex::Place ProcessTarget::PlaceAt(Position position) const {
  const auto place = index_.At(position);
  CLEW_CHECK(place.has_value(), "position {} of {}", position, end());
  return *place;
}

size_t ProcessTarget::IndexOf(Tid thread) const {
  const auto index = session_->tape().IndexOf(thread);
  CLEW_CHECK(index.has_value(), "CheckSteps let thread {} pass", thread);
  return *index;
}

// A thread that exited is still shown once nothing is left to run, so that
// there is always one to look at.
bool ProcessTarget::Exists(size_t thread) const {
  using follower::ThreadPhase;
  const ThreadPhase phase = process_.thread(thread).phase;
  if (phase == ThreadPhase::kGone && position() == end() && end() > 0) {
    return PlaceAt(end() - 1).thread == process_.tid(thread);
  }
  return phase == ThreadPhase::kRunning || phase == ThreadPhase::kInCall;
}

std::vector<TargetThread> ProcessTarget::Threads() const {
  std::vector<TargetThread> threads;
  for (size_t i = 0; i < process_.thread_count(); ++i) {
    if (Exists(i)) {
      const Tid tid = process_.tid(i);
      const auto name = options_.names.find(tid);
      threads.push_back({tid, name != options_.names.end()
                                  ? name->second
                                  : BaseName(options_.exec_path)});
    }
  }
  return threads;
}

std::optional<machine::Registers> ProcessTarget::ReadRegisters(
    Tid thread) const {
  const auto index = session_->tape().IndexOf(thread);
  if (!index || !Exists(*index)) {
    return std::nullopt;
  }
  return process_.thread(*index).registers;
}

std::optional<machine::Fault> ProcessTarget::FailingFault() const {
  const auto thread = session_->tape().IndexOf(failure_.thread);
  if (position() != end() || failure_.kind != FailureKind::kSignal || !thread) {
    return std::nullopt;
  }
  const follower::ThreadState& state = process_.thread(*thread);
  if (state.phase != follower::ThreadPhase::kRunning) {
    return machine::Fault{};
  }
  if (failure_.signal == SIGTRAP &&
      follower::EndsInBreakpoint(process_, *thread)) {
    return machine::Fault{.kind = machine::FaultKind::kBreakpoint};
  }
  machine::Registers registers = state.registers;
  machine::Memory memory = process_.memory();
  machine::CodeCache code(process_.cpu_features());
  const machine::Stop stop = machine::Machine(registers, memory, code).Run(1);
  return stop.kind == machine::StopKind::kUnsupported
             ? std::nullopt
             : std::optional(stop.fault);
}

size_t ProcessTarget::ReadMemoryOf(Tid thread, TraceeAddr addr,
                                   std::span<std::byte> bytes) const {
  const size_t read = ReadMemory(addr, bytes);
  if (const auto index = session_->tape().IndexOf(thread)) {
    process_.Forward(*index, addr.as_int(), bytes.first(read));
  }
  return read;
}

size_t ProcessTarget::ReadMemory(TraceeAddr addr,
                                 std::span<std::byte> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const uint64_t at = addr.as_int() + done;
    const size_t size =
        std::min<size_t>(kPageBytes - at % kPageBytes, bytes.size() - done);
    if (at < addr.as_int() ||
        !process_.memory().Peek(at, bytes.subspan(done, size))) {
      break;
    }
    done += size;
  }
  return done;
}

}  // namespace clew::replayer
