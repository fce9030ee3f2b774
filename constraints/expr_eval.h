#ifndef CLEW_CONSTRAINTS_EXPR_EVAL_H_
#define CLEW_CONSTRAINTS_EXPR_EVAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "constraints/expr.h"

namespace clew::constraints {

// Returns all nodes that the expressions are made of, each once, operands
// before what uses them. No recursion: safe for chains of any depth.
std::vector<const Expr*> ReachableNodes(std::span<const Expr* const> roots);

// Returns the variables that the expressions mention, ascending.
std::vector<VarId> VariablesOf(std::span<const Expr* const> roots);
std::vector<VarId> VariablesOf(const Expr* root);

// Values of variables; those never set are unknown.
class Assignment {
 public:
  void Set(VarId var, uint64_t value);
  std::optional<uint64_t> Get(VarId var) const;

 private:
  std::vector<std::optional<uint64_t>> values_;
};

// Evaluates expressions of one pool under an assignment that only grows:
// values once computed are kept. Not thread-safe.
class Evaluator {
 public:
  // `assignment` must outlive the evaluator.
  explicit Evaluator(const Assignment& assignment) : assignment_(assignment) {}

  // Returns the value, or nullopt if a variable that the expression mentions
  // has none.
  std::optional<uint64_t> Evaluate(const Expr* root);

 private:
  std::optional<uint64_t> ValueOf(const Expr* e) const;
  bool EvaluateNode(const Expr* e);

  const Assignment& assignment_;
  std::unordered_map<const Expr*, uint64_t> values_;
};

// Returns an SMT-LIB 2 script (QF_BV) without (check-sat), which declares every
// variable as v<id>, defines every shared node as e<id>, and asserts that every
// condition is true. REQUIRES: the conditions have width 1.
std::string ToSmtLib(const ExprPool& pool,
                     std::span<const Expr* const> conditions);

// Returns text for messages, at most `chars_max` characters: "(bvadd v3 #x01)".
std::string ToText(const Expr* e, size_t chars_max = 200);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_EXPR_EVAL_H_
