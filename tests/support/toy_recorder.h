#ifndef CLEW_TESTS_SUPPORT_TOY_RECORDER_H_
#define CLEW_TESTS_SUPPORT_TOY_RECORDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "common/digest.h"
#include "constraints/expr_eval.h"
#include "tests/support/toy_programs.h"

namespace clew::test {

// Runs a toy's accesses on a concrete memory and writes them down. Words have
// 32 bits and are numbered; word w is at kToyBase + 4 w.
class ToyRecorder {
 public:
  using Expr = constraints::Expr;

  ToyRecorder(const ToyOptions& options, ToyTrace& out);

  constraints::ExprPool& pool() { return *out_.pool; }
  const Expr* Word(uint64_t value) { return pool().Const(value, 32); }
  void SetInitial(uint32_t word, uint32_t value);

  // One tick each; the access belongs to the running thread.
  const Expr* Read(uint32_t word);
  void Write(uint32_t word, const Expr* value);
  const Expr* ReadModifyWrite(
      uint32_t word, const std::function<const Expr*(const Expr*)>& update);

  // The running thread branches on it; the outcome is evidence.
  bool Branch(const Expr* condition);
  // The value was given away, for example as an address.
  void Reveal(const Expr* e);
  uint64_t Value(const Expr* e);
  uint32_t Peek(uint32_t word) const;

  // `step` makes exactly one access of the thread and returns false once the
  // thread has ended with it.
  void Run(const std::function<bool(uint32_t thread)>& step);
  void DemandFinal(uint32_t word);

  // For a read that happens after all threads (a join): appended to thread 0
  // with order facts.
  void BeginEpilogue();

  // Coarsens the times, once all accesses are made.
  void FillTimes();

 private:
  constraints::TraceAccess& NewAccess(AccessKind kind, uint32_t word);
  void SwitchContext(uint32_t core);
  void AssignSlice(uint32_t core);
  void Evidence(const Expr* condition);

  const ToyOptions& options_;
  ToyTrace& out_;
  Random random_;
  constraints::Assignment values_;
  constraints::Evaluator evaluator_;
  std::map<uint32_t, uint32_t> memory_;
  std::vector<constraints::GroupId> path_groups_;  // by thread
  constraints::GroupId memory_group_;
  uint32_t running_ = 0;
  uint64_t tick_ = 0;
  std::vector<bool> ended_;
  std::vector<uint32_t> on_core_;  // thread, by core; kIdle: none
  std::vector<uint32_t> slice_;    // current slice, by core
  std::vector<uint32_t> slices_of_core_;
  std::vector<uint32_t> left_;  // accesses until the next switch, by core
};

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_TOY_RECORDER_H_
