#ifndef CLEW_CONSTRAINTS_TRACE_EXECUTOR_H_
#define CLEW_CONSTRAINTS_TRACE_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "constraints/executor.h"
#include "constraints/must_order.h"
#include "constraints/thread_program.h"
#include "constraints/trace.h"

namespace clew::constraints {

// Runs a constraint trace as if it were the program: one access a Step, values
// computed from what is read. For toy instances, benchmarks, and traces whose
// unknowns are all reads.
class TraceExecutor final : public Executor {
 public:
  // Makes an executor at its start. Fails with kInvalidArgument if the trace is
  // not valid, and with kUnsupported if it has unknowns. The trace must outlive
  // the executor.
  [[nodiscard]] static Result<std::unique_ptr<TraceExecutor>> Create(
      const ConstraintTrace& trace, OrderSources sources = {});

  uint32_t actor_count() const override;
  bool Finished(uint32_t thread) const override;
  bool Enabled(uint32_t thread) const override;
  NextStep Next(uint32_t thread) const override;
  StepResult Step(uint32_t thread) override;
  Mark SetMark() override { return undo_.size(); }
  void RollBack(Mark mark) override;
  uint64_t StateDigest() const override { return digest_; }
  double GuessKey(uint32_t thread) const override;
  uint64_t EndViolations() override;
  const Contradiction& last_contradiction() const override;

 private:
  // Bytes that are accessed, numbered densely and in order of address, so that
  // an access is a range.
  struct Place {
    uint32_t byte = 0;
    uint32_t cluster = 0;  // accesses that overlap, however indirectly
  };
  struct Undo {
    uint32_t thread;
    uint64_t overwritten;
    uint64_t digest;
  };
  struct Demand {
    uint32_t byte;
    uint32_t size_bytes;
    uint64_t value;
    uint32_t index;
  };

  TraceExecutor(const ConstraintTrace& trace, OrderSources sources);
  Status Prepare();
  void PlaceBytes();
  void FillMemory();
  void FindConflicts();
  void FindConflictsOf(uint32_t thread, uint32_t other,
                       const std::vector<std::vector<uint32_t>>& all,
                       const std::vector<std::vector<uint32_t>>& writes);
  bool IsContested(uint32_t thread) const;
  // Computes what the access makes known. Returns the failed check, or nullptr.
  // Slots need no undo: a slot is computed again when its access is run again.
  const ThreadProgram::Check* RunOps(uint32_t thread,
                                     const AccessProgram& at) const;
  uint64_t Load(uint32_t byte, uint32_t size) const;
  void Store(uint32_t byte, uint32_t size, uint64_t value);
  void UpdateDigest(uint32_t thread, const AccessProgram& at);
  void AddConflictReads(uint32_t thread, const Expr* condition) const;
  uint32_t IdOf(uint32_t thread) const {
    return first_[thread] + next_[thread];
  }

  const ConstraintTrace& trace_;
  OrderSources sources_;
  std::vector<ThreadProgram> programs_;
  std::vector<MustOrder> order_;  // one, or none if contradictory
  std::vector<uint32_t> first_;   // id of each thread's first access
  std::vector<Place> places_;     // by access id
  // By access id and thread: how many accesses of that thread must be done so
  // that no conflicting one is left that could still go before or after.
  std::vector<uint32_t> conflict_end_;
  std::vector<double> keys_;  // by access id
  std::vector<Demand> demands_;
  std::map<uint64_t, uint32_t> cluster_of_addr_;  // first byte -> dense number
  std::unordered_map<const Expr*, uint32_t> read_at_;

  std::vector<uint32_t> next_;
  mutable std::vector<std::vector<uint64_t>> slots_;  // by thread
  std::vector<uint8_t> memory_;
  std::vector<Undo> undo_;
  uint64_t digest_ = 0;
  // The condition that failed; told in full only if asked for.
  const PathCondition* failed_ = nullptr;
  mutable Contradiction contradiction_;
};

// Returns the order of accesses that a step order of a TraceExecutor stands
// for.
AccessOrder ToAccessOrder(const StepOrder& steps);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_TRACE_EXECUTOR_H_
