#include "constraints/expr_eval.h"

#include <algorithm>
#include <unordered_set>

namespace clew::constraints {

std::vector<const Expr*> ReachableNodes(std::span<const Expr* const> roots) {
  std::unordered_set<const Expr*> seen(roots.begin(), roots.end());
  std::vector<const Expr*> nodes(seen.begin(), seen.end());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Expr* operand : nodes[i]->operands) {
      if (operand != nullptr && seen.insert(operand).second) {
        nodes.push_back(operand);
      }
    }
  }
  // Operands are made before what uses them, so they have smaller ids.
  std::ranges::sort(nodes, {}, &Expr::id);
  return nodes;
}

std::vector<VarId> VariablesOf(std::span<const Expr* const> roots) {
  std::vector<VarId> vars;
  for (const Expr* e : ReachableNodes(roots)) {
    if (e->op == ExprOp::kVar) {
      vars.push_back(e->var());
    }
  }
  std::ranges::sort(vars);
  return vars;
}

std::vector<VarId> VariablesOf(const Expr* root) {
  return VariablesOf(std::span(&root, 1));
}

void Assignment::Set(VarId var, uint64_t value) {
  if (var.as_int() >= values_.size()) {
    values_.resize(var.as_int() + size_t{1});
  }
  values_[var.as_int()] = value;
}

std::optional<uint64_t> Assignment::Get(VarId var) const {
  return var.as_int() < values_.size() ? values_[var.as_int()] : std::nullopt;
}

std::optional<uint64_t> Evaluator::ValueOf(const Expr* e) const {
  if (e->is_const()) {
    return e->value;
  }
  if (e->op == ExprOp::kVar) {
    return assignment_.Get(e->var());
  }
  const auto found = values_.find(e);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

bool Evaluator::EvaluateNode(const Expr* e) {
  std::array<uint64_t, 3> operands = {};
  for (size_t i = 0; i < OperandCount(e->op); ++i) {
    const auto value = ValueOf(e->operands[i]);
    if (!value) {
      return false;
    }
    operands[i] = *value;
  }
  values_[e] = ApplyOp(*e, operands[0], operands[1], operands[2]);
  return true;
}

std::optional<uint64_t> Evaluator::Evaluate(const Expr* root) {
  // Post-order with an explicit stack, stopping at what is known already.
  std::vector<const Expr*> stack = {root};
  while (!stack.empty()) {
    const Expr* e = stack.back();
    if (ValueOf(e)) {
      stack.pop_back();
      continue;
    }
    if (e->op == ExprOp::kVar) {
      return std::nullopt;
    }
    if (EvaluateNode(e)) {
      stack.pop_back();
      continue;
    }
    for (const Expr* operand : e->operands) {
      if (operand != nullptr && !ValueOf(operand)) {
        stack.push_back(operand);
      }
    }
  }
  return ValueOf(root);
}

}  // namespace clew::constraints
