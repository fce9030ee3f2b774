#include "tests/replayer/fake_target.h"

#include <array>

#include "common/check.h"
#include "common/digest.h"

namespace clew::replayer {
namespace {

ScheduleIndex IndexOf(const std::vector<ScheduleStep>& steps) {
  auto index = ScheduleIndex::Create(steps);
  CLEW_CHECK(index.has_value(), "{}", index.error().message);
  return *index;
}

}  // namespace

FakeTarget::FakeTarget(std::vector<ToyThread> threads,
                       const std::vector<ScheduleStep>& steps, Failure failure)
    : threads_(std::move(threads)), index_(IndexOf(steps)), failure_(failure) {
  constexpr uint64_t kBytes = 0x1000;
  now_.memory.Map(kToyCode, kBytes, kProtRead | kProtExec);
  now_.memory.Map(kToyData, kBytes, kProtRead | kProtWrite);
  now_.memory.Map(kToyStack, kBytes, kProtRead | kProtWrite);
}

std::unique_ptr<ReplayTarget::State> FakeTarget::Save() const {
  return std::make_unique<Now>(now_);
}

void FakeTarget::Load(const State& state) {
  now_ = dynamic_cast<const Now&>(state);
}

const ToyThread& FakeTarget::ThreadOf(Tid tid) const {
  for (const ToyThread& thread : threads_) {
    if (thread.tid == tid) {
      return thread;
    }
  }
  CLEW_CHECK(false, "no toy thread {}", tid);
  return threads_.front();
}

const ToyInsn& FakeTarget::NextInsn(Tid tid) const {
  const ToyThread& thread = ThreadOf(tid);
  const auto retired = now_.retired.find(tid);
  const uint64_t count = retired == now_.retired.end() ? 0 : retired->second;
  return thread.program[count % thread.program.size()];
}

Result<RunStop> FakeTarget::Run(Position until, const StopPoints& points,
                                bool pass_first) {
  CLEW_CHECK(position() <= until && until <= end(), "run {} to {} of {}",
             position(), until, end());
  if (before_run_) {
    before_run_(position());
  }
  WatchMonitor monitor(points, now_.memory);
  for (; position() < until; pass_first = false) {
    const Tid tid = *ThreadAt(position());
    if (!pass_first && points.HasBreakpoint(NextInsn(tid).ip)) {
      return RunStop{RunEnd::kBreakpoint, {}};
    }
    if (diverges_at_ && position() >= *diverges_at_) {
      return CorruptInput("toy diverges at {}", position());
    }
    Execute(tid, monitor);
    if (const auto hit = monitor.Check()) {
      return RunStop{RunEnd::kWatchpoint, *hit};
    }
  }
  return RunStop{};
}

void FakeTarget::Execute(Tid tid, WatchMonitor& monitor) {
  const ToyInsn& insn = NextInsn(tid);
  uint64_t word = 0;
  switch (insn.kind) {
    case ToyInsn::Kind::kNop:
      break;
    case ToyInsn::Kind::kOutput:
      if (output_ != nullptr) {
        output_->OnOutput(std::as_bytes(std::span(insn.text)));
      }
      break;
    case ToyInsn::Kind::kRead:
      monitor.OnAccess({.ip = insn.ip,
                        .addr = insn.addr,
                        .size_bytes = 8,
                        .kind = AccessKind::kRead});
      break;
    case ToyInsn::Kind::kAdd:
      CLEW_CHECK(now_.memory.Load(insn.addr, word), "toy word");
      word += insn.amount;
      CLEW_CHECK(now_.memory.Store(insn.addr, word), "toy word");
      monitor.OnAccess({.ip = insn.ip,
                        .addr = insn.addr,
                        .value = word,
                        .size_bytes = 8,
                        .kind = AccessKind::kWrite});
      break;
  }
  ++now_.retired[tid];
  ++now_.position;
  ++work_;
}

std::optional<Tid> FakeTarget::ThreadAt(Position position) const {
  const auto place = index_.At(position);
  return place ? std::optional(place->thread) : std::nullopt;
}

std::optional<Position> FakeTarget::LastBefore(Tid thread,
                                               Position position) const {
  return index_.LastBefore(thread, position);
}

std::optional<Position> FakeTarget::FirstFrom(Tid thread,
                                              Position position) const {
  return index_.FirstFrom(thread, position);
}

std::vector<TargetThread> FakeTarget::Threads() const {
  std::vector<TargetThread> threads;
  for (const ToyThread& thread : threads_) {
    if (thread.born <= position()) {
      threads.push_back({thread.tid, thread.name});
    }
  }
  return threads;
}

std::optional<machine::Registers> FakeTarget::ReadRegisters(Tid tid) const {
  for (const TargetThread& thread : Threads()) {
    if (thread.tid == tid) {
      machine::Registers registers;
      registers.rip = NextInsn(tid).ip;
      const auto retired = now_.retired.find(tid);
      registers.gpr[kRax] = retired == now_.retired.end() ? 0 : retired->second;
      registers.gpr[kRsp] = kToyStack + 0x800;
      registers.fs_base = fs_base_;
      registers.vec[0][1].q = {0x0123456789abcdefu, 0xfedcba9876543210u};
      registers.vec[2][1].q = {0x222, 0};
      registers.vec[3][1].q = {0, 0x333};
      registers.vec[0][31].q = {0x444, 0};
      registers.vec[1][31].q = {0, 0x555};
      registers.opmask[5] = 0x666;
      return registers;
    }
  }
  return std::nullopt;
}

size_t FakeTarget::ReadMemory(TraceeAddr addr,
                              std::span<std::byte> bytes) const {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!now_.memory.Peek(addr.as_int() + i, bytes.subspan(i, 1))) {
      return i;
    }
  }
  return bytes.size();
}

std::vector<ToyThread> ToyThreads(size_t count, size_t insns) {
  std::vector<ToyThread> threads;
  for (size_t i = 0; i < count; ++i) {
    ToyThread thread{.tid = Tid(static_cast<int32_t>(1000 + i)),
                     .name = fmt::format("toy-{}", i),
                     .program = {}};
    for (size_t n = 0; n < insns; ++n) {
      thread.program.push_back({.ip = kToyCode + 0x100 * i + 4 * n});
    }
    const auto set = [&thread](size_t n, ToyInsn::Kind kind, uint64_t addr) {
      if (n < thread.program.size()) {
        thread.program[n].kind = kind;
        thread.program[n].addr = addr;
        thread.program[n].amount = 1;
      }
    };
    set(1, ToyInsn::Kind::kAdd, kToyData + 8 * i);
    set(2, ToyInsn::Kind::kAdd, kToyShared);
    set(3, ToyInsn::Kind::kRead, kToyShared);
    threads.push_back(std::move(thread));
  }
  return threads;
}

std::vector<ScheduleStep> RandomSteps(uint64_t seed, size_t threads,
                                      size_t runs, uint64_t run_max) {
  Random random(seed);
  std::vector<uint64_t> retired(threads);
  std::vector<ScheduleStep> steps;
  for (size_t i = 0; i < runs; ++i) {
    const size_t thread = random.Below(threads);
    retired[thread] += 1 + random.Below(run_max);
    steps.push_back({.thread = Tid(static_cast<int32_t>(1000 + thread)),
                     .until_insn = retired[thread]});
  }
  return steps;
}

}  // namespace clew::replayer
