#include "tests/support/toy_recorder.h"

#include <algorithm>

#include "common/check.h"

namespace clew::test {
namespace {

using constraints::EvidenceKind;

constexpr uint64_t kToyBase = 0x10000;
constexpr uint32_t kIdle = ~uint32_t{0};

}  // namespace

ToyRecorder::ToyRecorder(const ToyOptions& options, ToyTrace& out)
    : options_(options),
      out_(out),
      random_(options.seed),
      evaluator_(values_),
      ended_(options.threads, false) {
  auto& trace = out_.trace;
  out_.pool = std::make_unique<constraints::ExprPool>();
  trace.time_group = trace.AddGroup(EvidenceKind::kTime, "timing packets");
  trace.core_group = trace.AddGroup(EvidenceKind::kCore, "order on cores");
  memory_group_ = trace.AddGroup(EvidenceKind::kMemory, "final memory");
  for (uint32_t t = 0; t < options.threads; ++t) {
    path_groups_.push_back(trace.AddGroup(
        EvidenceKind::kPath, fmt::format("branches of thread {}", t)));
    trace.threads.push_back({Tid(static_cast<int32_t>(100 + t)), {}});
  }
  const uint32_t cores = options.cores == 0 ? options.threads : options.cores;
  on_core_.assign(cores, kIdle);
  slice_.assign(cores, constraints::kNoSlice);
  slices_of_core_.assign(cores, 0);
  left_.assign(cores, 0);
}

void ToyRecorder::SetInitial(uint32_t word, uint32_t value) {
  memory_[word] = value;
  out_.trace.initial.push_back(
      {TraceeAddr(kToyBase + 4 * uint64_t{word}), 4, Word(value)});
}

uint32_t ToyRecorder::Peek(uint32_t word) const {
  const auto found = memory_.find(word);
  return found == memory_.end() ? 0 : found->second;
}

uint64_t ToyRecorder::Value(const Expr* e) {
  const auto value = evaluator_.Evaluate(e);
  CLEW_CHECK(value.has_value(), "a toy uses a value that it never read");
  return *value;
}

constraints::TraceAccess& ToyRecorder::NewAccess(AccessKind kind,
                                                 uint32_t word) {
  auto& accesses = out_.trace.threads[running_].accesses;
  constraints::TraceAccess access;
  access.kind = kind;
  access.addr = TraceeAddr(kToyBase + 4 * uint64_t{word});
  access.size_bytes = 4;
  access.ip = TraceeAddr(0x400000 + accesses.size());
  access.time = {TscTicks(tick_), TscTicks(tick_)};
  if (options_.cores != 0) {
    const auto core = std::ranges::find(on_core_, running_);
    access.slice = core == on_core_.end()
                       ? constraints::kNoSlice
                       : slice_[static_cast<size_t>(core - on_core_.begin())];
  }
  if (Reads(kind)) {
    access.read_value = pool().NewVar(
        32, fmt::format("read {} of thread {}", accesses.size(), running_));
    values_.Set(access.read_value->var(), Peek(word));
  }
  accesses.push_back(access);
  out_.recorded.push_back(running_);
  ++tick_;
  return accesses.back();
}

const constraints::Expr* ToyRecorder::Read(uint32_t word) {
  auto& access = NewAccess(AccessKind::kRead, word);
  const Expr* value = access.read_value;
  if (!options_.values) {
    access.read_value = nullptr;
    return Word(Value(value));
  }
  return value;
}

void ToyRecorder::Write(uint32_t word, const Expr* value) {
  NewAccess(AccessKind::kWrite, word).written_value = value;
  memory_[word] = static_cast<uint32_t>(Value(value));
}

const constraints::Expr* ToyRecorder::ReadModifyWrite(
    uint32_t word, const std::function<const Expr*(const Expr*)>& update) {
  auto& access = NewAccess(AccessKind::kReadModifyWrite, word);
  access.written_value = update(access.read_value);
  memory_[word] = static_cast<uint32_t>(Value(access.written_value));
  return access.read_value;
}

void ToyRecorder::Evidence(const Expr* condition) {
  if (condition->is_const()) {
    CLEW_CHECK(condition->value == 1, "a toy contradicts itself");
    return;
  }
  auto& trace = out_.trace;
  const auto done =
      static_cast<uint32_t>(trace.threads[running_].accesses.size());
  trace.path.push_back({condition, running_, done, path_groups_[running_],
                        TraceeAddr(0x400000 + done)});
}

bool ToyRecorder::Branch(const Expr* condition) {
  const bool taken = Value(condition) == 1;
  Evidence(taken ? condition : pool().Not(condition));
  return taken;
}

void ToyRecorder::Reveal(const Expr* e) {
  Evidence(pool().Eq(e, pool().Const(Value(e), e->width)));
}

void ToyRecorder::SwitchContext(uint32_t core) {
  std::vector<uint32_t> waiting;
  for (uint32_t t = 0; t < options_.threads; ++t) {
    const bool runs = std::ranges::find(on_core_, t) != on_core_.end();
    if (!ended_[t] && !runs) {
      waiting.push_back(t);
    }
  }
  left_[core] = 1 + static_cast<uint32_t>(
                        random_.Below(2 * uint64_t{options_.switch_every}));
  const bool keeps = on_core_[core] != kIdle && !ended_[on_core_[core]];
  if (waiting.empty()) {
    on_core_[core] = keeps ? on_core_[core] : kIdle;
    return;
  }
  on_core_[core] = waiting[random_.Below(waiting.size())];
  out_.trace.slices.push_back({CoreId(core), slices_of_core_[core]++});
  slice_[core] = static_cast<uint32_t>(out_.trace.slices.size() - 1);
}

void ToyRecorder::Run(const std::function<bool(uint32_t thread)>& step) {
  uint32_t alive = options_.threads;
  while (alive > 0) {
    const auto core = static_cast<uint32_t>(random_.Below(on_core_.size()));
    const bool idle = on_core_[core] == kIdle || ended_[on_core_[core]];
    if (idle || left_[core] == 0) {
      SwitchContext(core);
    }
    if (on_core_[core] == kIdle) {
      continue;
    }
    --left_[core];
    running_ = on_core_[core];
    if (!step(running_)) {
      ended_[running_] = true;
      on_core_[core] = kIdle;
      --alive;
    }
  }
}

// Windows are aligned and fall together on all cores, as MTC edges do.
void ToyRecorder::FillTimes() {
  out_.trace.clock_slack_ticks = options_.slack;
  for (auto& thread : out_.trace.threads) {
    for (auto& access : thread.accesses) {
      if (options_.window == 0) {
        access.time = {TscTicks(0), TscTicks(~uint64_t{0})};
        continue;
      }
      const uint64_t at = access.time.lo.as_int();
      const uint64_t lo = at - at % options_.window;
      access.time = {TscTicks(lo), TscTicks(lo + options_.window - 1)};
    }
  }
}

void ToyRecorder::DemandFinal(uint32_t word) {
  out_.trace.final_memory.push_back({TraceeAddr(kToyBase + 4 * uint64_t{word}),
                                     4, Peek(word), memory_group_});
}

void ToyRecorder::BeginEpilogue() {
  running_ = 0;
  auto& trace = out_.trace;
  const auto sync = trace.AddGroup(EvidenceKind::kSync, "joins");
  const auto next = static_cast<uint32_t>(trace.threads[0].accesses.size());
  for (uint32_t t = 1; t < options_.threads; ++t) {
    const auto count = static_cast<uint32_t>(trace.threads[t].accesses.size());
    if (count > 0) {
      trace.order.push_back({{t, count - 1}, {0, next}, sync});
    }
  }
}

}  // namespace clew::test
