#include "constraints/trace_executor.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "common/check.h"
#include "common/digest.h"
#include "constraints/guess_keys.h"

namespace clew::constraints {

namespace {

constexpr size_t kConflictReadsMax = 64;

uint64_t ByteDigest(uint32_t byte, uint8_t value) {
  return MixBits((uint64_t{byte} << 8 | value) ^ 0x1111'1111'1111'1111u);
}

uint64_t PositionDigest(uint32_t thread, uint32_t next) {
  return MixBits((uint64_t{thread + 1} << 40 | next) ^ 0x7700'0000'0000'0000u);
}

uint64_t SlotDigest(uint32_t thread, uint32_t slot, uint64_t value) {
  return MixBits(MixBits(value) + (uint64_t{thread + 1} << 34 ^ slot));
}

}  // namespace

TraceExecutor::TraceExecutor(const ConstraintTrace& trace, OrderSources sources)
    : trace_(trace), sources_(sources), next_(trace.threads.size(), 0) {}

Result<std::unique_ptr<TraceExecutor>> TraceExecutor::Create(
    const ConstraintTrace& trace, OrderSources sources) {
  CLEW_RETURN_IF_ERROR(Validate(trace));
  for (const auto& initial : trace.initial) {
    if (!initial.value->is_const()) {
      return Unsupported("initial memory at {:#x} is not known", initial.addr);
    }
  }
  std::unique_ptr<TraceExecutor> executor(new TraceExecutor(trace, sources));
  CLEW_RETURN_IF_ERROR(executor->Prepare());
  return executor;
}

Status TraceExecutor::Prepare() {
  uint32_t count = 0;
  for (uint32_t t = 0; t < actor_count(); ++t) {
    CLEW_ASSIGN_OR_RETURN(program, CompileThread(trace_, t));
    slots_.push_back(program.start);
    programs_.push_back(std::move(program));
    first_.push_back(count);
    for (const auto& access : trace_.threads[t].accesses) {
      read_at_.try_emplace(access.read_value, count - first_[t]);
      ++count;
    }
    digest_ ^= PositionDigest(t, 0);
  }
  if (auto order = MustOrder::Compute(trace_, sources_)) {
    order_.push_back(std::move(*order));
  }
  PlaceBytes();
  FillMemory();
  FindConflicts();
  keys_ = GuessKeys(trace_);
  return {};
}

// Sweeps over all ranges by address; those that overlap are one cluster.
void TraceExecutor::PlaceBytes() {
  struct Range {
    uint64_t addr;
    uint32_t size;
    Place* place;
  };
  size_t count = 0;
  for (const auto& thread : trace_.threads) {
    count += thread.accesses.size();
  }
  places_.resize(count);
  std::vector<Range> ranges;
  for (const auto& thread : trace_.threads) {
    for (const auto& access : thread.accesses) {
      ranges.push_back(
          {access.addr.as_int(), access.size_bytes, &places_[ranges.size()]});
    }
  }
  std::vector<Place> demand_places(trace_.final_memory.size());
  for (size_t i = 0; i < trace_.final_memory.size(); ++i) {
    const auto& demand = trace_.final_memory[i];
    ranges.push_back(
        {demand.addr.as_int(), demand.size_bytes, &demand_places[i]});
  }
  std::ranges::sort(ranges, {}, &Range::addr);
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t base = 0;
  uint32_t cluster = 0;
  for (const Range& range : ranges) {
    if (range.addr >= end) {
      base += static_cast<uint32_t>(end - begin);
      begin = end = range.addr;
      ++cluster;
      cluster_of_addr_[begin] = base;
    }
    end = std::max(end, range.addr + range.size);
    *range.place = {base + static_cast<uint32_t>(range.addr - begin), cluster};
  }
  memory_.assign(base + static_cast<size_t>(end - begin), 0);
  for (uint32_t i = 0; i < demand_places.size(); ++i) {
    const auto& demand = trace_.final_memory[i];
    demands_.push_back(
        {demand_places[i].byte, demand.size_bytes, demand.value, i});
  }
}

void TraceExecutor::FillMemory() {
  std::unordered_map<uint64_t, uint8_t> initial;
  for (const auto& value : trace_.initial) {
    for (uint32_t i = 0; i < value.size_bytes; ++i) {
      initial[value.addr.as_int() + i] =
          static_cast<uint8_t>(value.value->value >> (8 * i));
    }
  }
  for (auto it = cluster_of_addr_.begin(); it != cluster_of_addr_.end();) {
    const auto [addr, base] = *it;
    ++it;
    const size_t end =
        it == cluster_of_addr_.end() ? memory_.size() : it->second;
    for (size_t byte = base; byte < end; ++byte) {
      const auto found = initial.find(addr + (byte - base));
      memory_[byte] = found == initial.end() ? uint8_t{0} : found->second;
    }
  }
}

void TraceExecutor::FindConflictsOf(
    uint32_t thread, uint32_t other,
    const std::vector<std::vector<uint32_t>>& all,
    const std::vector<std::vector<uint32_t>>& writes) {
  const auto& accesses = trace_.threads[thread].accesses;
  for (uint32_t i = 0; i < accesses.size(); ++i) {
    const uint32_t id = first_[thread] + i;
    const auto& list =
        (Writes(accesses[i].kind) ? all : writes)[places_[id].cluster];
    // Those that this access is not certainly before come first.
    const auto end = std::ranges::partition_point(list, [&](uint32_t index) {
      return order_.empty() || !order_[0].Before(id, first_[other] + index);
    });
    conflict_end_[size_t{id} * actor_count() + other] =
        end == list.begin() ? 0 : *(end - 1) + 1;
  }
}

void TraceExecutor::FindConflicts() {
  uint32_t clusters = 0;
  for (const Place& place : places_) {
    clusters = std::max(clusters, place.cluster + 1);
  }
  conflict_end_.assign(places_.size() * actor_count(), 0);
  for (uint32_t u = 0; u < actor_count(); ++u) {
    std::vector<std::vector<uint32_t>> all(clusters);
    std::vector<std::vector<uint32_t>> writes(clusters);
    const auto& accesses = trace_.threads[u].accesses;
    for (uint32_t i = 0; i < accesses.size(); ++i) {
      const uint32_t cluster = places_[first_[u] + i].cluster;
      all[cluster].push_back(i);
      if (Writes(accesses[i].kind)) {
        writes[cluster].push_back(i);
      }
    }
    for (uint32_t t = 0; t < actor_count(); ++t) {
      if (t != u) {
        FindConflictsOf(t, u, all, writes);
      }
    }
  }
}

uint32_t TraceExecutor::actor_count() const {
  return static_cast<uint32_t>(trace_.threads.size());
}

bool TraceExecutor::Finished(uint32_t thread) const {
  return next_[thread] >= trace_.threads[thread].accesses.size();
}

bool TraceExecutor::Enabled(uint32_t thread) const {
  if (Finished(thread) || order_.empty()) {
    return false;
  }
  for (uint32_t u = 0; u < actor_count(); ++u) {
    if (order_[0].CountBefore(IdOf(thread), u) > next_[u]) {
      return false;
    }
  }
  return true;
}

bool TraceExecutor::IsContested(uint32_t thread) const {
  const size_t row = size_t{IdOf(thread)} * actor_count();
  bool contested = false;
  for (uint32_t u = 0; u < actor_count(); ++u) {
    contested |= next_[u] < conflict_end_[row + u];
  }
  if (!contested) {
    return false;
  }
  const AccessProgram& at = programs_[thread].accesses[next_[thread]];
  return !at.pure_test || RunOps(thread, at) != nullptr;
}

NextStep TraceExecutor::Next(uint32_t thread) const {
  const auto& access = trace_.threads[thread].accesses[next_[thread]];
  return {access.kind, access.addr, access.size_bytes, access.time,
          IsContested(thread)};
}

double TraceExecutor::GuessKey(uint32_t thread) const {
  return keys_[IdOf(thread)];
}

uint64_t TraceExecutor::Load(uint32_t byte, uint32_t size) const {
  uint64_t value = 0;
  for (uint32_t i = 0; i < size; ++i) {
    value |= uint64_t{memory_[byte + i]} << (8 * i);
  }
  return value;
}

void TraceExecutor::Store(uint32_t byte, uint32_t size, uint64_t value) {
  for (uint32_t i = 0; i < size; ++i) {
    memory_[byte + i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

const ThreadProgram::Check* TraceExecutor::RunOps(
    uint32_t thread, const AccessProgram& at) const {
  const ThreadProgram& program = programs_[thread];
  std::vector<uint64_t>& slots = slots_[thread];
  const auto& access = trace_.threads[thread].accesses[next_[thread]];
  if (at.read_slot != kNoSlot) {
    slots[at.read_slot] = Load(places_[IdOf(thread)].byte, access.size_bytes);
  }
  const auto value = [&](uint32_t slot) {
    return slot == kNoSlot ? 0 : slots[slot];
  };
  for (uint32_t i = at.ops_begin; i < at.ops_end; ++i) {
    const SlotOp& op = program.ops[i];
    slots[op.target] = ApplyOp(*op.e, value(op.operands[0]),
                               value(op.operands[1]), value(op.operands[2]));
  }
  for (uint32_t i = at.checks_begin; i < at.checks_end; ++i) {
    if (slots[program.checks[i].slot] != 1) {
      return &program.checks[i];
    }
  }
  return nullptr;
}

void TraceExecutor::UpdateDigest(uint32_t thread, const AccessProgram& at) {
  const ThreadProgram& program = programs_[thread];
  digest_ ^= PositionDigest(thread, next_[thread]) ^
             PositionDigest(thread, next_[thread] + 1);
  for (uint32_t i = at.born_begin; i < at.born_end; ++i) {
    const uint32_t slot = program.born[i];
    digest_ ^= SlotDigest(thread, slot, slots_[thread][slot]);
  }
  for (uint32_t i = at.dead_begin; i < at.dead_end; ++i) {
    const uint32_t slot = program.dead[i];
    digest_ ^= SlotDigest(thread, slot, slots_[thread][slot]);
  }
}

StepResult TraceExecutor::Step(uint32_t thread) {
  if (!Enabled(thread)) {
    return StepResult::kBlocked;
  }
  const AccessProgram& at = programs_[thread].accesses[next_[thread]];
  const auto& access = trace_.threads[thread].accesses[next_[thread]];
  const uint32_t byte = places_[IdOf(thread)].byte;
  if (const auto* failed = RunOps(thread, at)) {
    failed_ = &trace_.path[failed->path_index];
    return StepResult::kContradiction;
  }
  undo_.push_back({thread, Load(byte, access.size_bytes), digest_});
  UpdateDigest(thread, at);
  if (at.written_slot != kNoSlot) {
    for (uint32_t i = 0; i < access.size_bytes; ++i) {
      const auto now =
          static_cast<uint8_t>(slots_[thread][at.written_slot] >> (8 * i));
      digest_ ^=
          ByteDigest(byte + i, memory_[byte + i]) ^ ByteDigest(byte + i, now);
    }
    Store(byte, access.size_bytes, slots_[thread][at.written_slot]);
  }
  ++next_[thread];
  return Finished(thread) ? StepResult::kFinished : StepResult::kOk;
}

void TraceExecutor::RollBack(Mark mark) {
  CLEW_CHECK(mark <= undo_.size(), "mark {} of {}", mark, undo_.size());
  while (undo_.size() > mark) {
    const Undo& undo = undo_.back();
    --next_[undo.thread];
    const auto& access =
        trace_.threads[undo.thread].accesses[next_[undo.thread]];
    Store(places_[IdOf(undo.thread)].byte, access.size_bytes, undo.overwritten);
    digest_ = undo.digest;
    undo_.pop_back();
  }
}

const Contradiction& TraceExecutor::last_contradiction() const {
  if (failed_ != nullptr) {
    contradiction_ = {failed_->thread, failed_->ip, {}, {}};
    contradiction_.text =
        fmt::format("{}: a recorded condition does not hold",
                    trace_.groups[failed_->group.as_int()].label);
    AddConflictReads(failed_->thread, failed_->condition);
  }
  return contradiction_;
}

// The latest reads first: variables have been made in order of reading, or
// nearly so, and later nodes have larger ids.
void TraceExecutor::AddConflictReads(uint32_t thread,
                                     const Expr* condition) const {
  const auto earlier = [](const Expr* a, const Expr* b) {
    return a->id < b->id;
  };
  std::priority_queue<const Expr*, std::vector<const Expr*>, decltype(earlier)>
      open(earlier);
  std::unordered_set<const Expr*> seen;
  open.push(condition);
  while (!open.empty() &&
         contradiction_.conflict_set.size() < kConflictReadsMax) {
    const Expr* e = open.top();
    open.pop();
    if (e->op == ExprOp::kVar) {
      const uint32_t index = read_at_.at(e);
      const auto& access = trace_.threads[thread].accesses[index];
      contradiction_.conflict_set.push_back(
          {thread, index, access.addr, access.size_bytes});
    }
    for (const Expr* operand : e->operands) {
      if (operand != nullptr && seen.insert(operand).second) {
        open.push(operand);
      }
    }
  }
}

uint64_t TraceExecutor::EndViolations() {
  uint64_t violations = 0;
  failed_ = nullptr;
  contradiction_ = {};
  for (const Demand& demand : demands_) {
    if (Load(demand.byte, demand.size_bytes) != demand.value) {
      ++violations;
      contradiction_.text =
          fmt::format("memory at {:#x} ends as {:#x}, recorded {:#x}",
                      trace_.final_memory[demand.index].addr,
                      Load(demand.byte, demand.size_bytes), demand.value);
      contradiction_.conflict_set.push_back(
          {kNoThread, ~uint64_t{0}, trace_.final_memory[demand.index].addr,
           demand.size_bytes});
    }
  }
  for (const auto& path : trace_.path) {
    if (trace_.threads[path.thread].accesses.empty() &&
        !path.condition->IsConst(1)) {
      ++violations;
    }
  }
  return violations;
}

AccessOrder ToAccessOrder(const StepOrder& steps) { return steps; }

}  // namespace clew::constraints
