#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "constraints/expr_eval.h"

namespace clew::constraints {
namespace {

std::string_view Name(ExprOp op) {
  switch (op) {
    case ExprOp::kNot:
      return "bvnot";
    case ExprOp::kNeg:
      return "bvneg";
    case ExprOp::kAdd:
      return "bvadd";
    case ExprOp::kSub:
      return "bvsub";
    case ExprOp::kMul:
      return "bvmul";
    case ExprOp::kUdiv:
      return "bvudiv";
    case ExprOp::kUrem:
      return "bvurem";
    case ExprOp::kSdiv:
      return "bvsdiv";
    case ExprOp::kSrem:
      return "bvsrem";
    case ExprOp::kAnd:
      return "bvand";
    case ExprOp::kOr:
      return "bvor";
    case ExprOp::kXor:
      return "bvxor";
    case ExprOp::kShl:
      return "bvshl";
    case ExprOp::kLshr:
      return "bvlshr";
    case ExprOp::kAshr:
      return "bvashr";
    case ExprOp::kEq:
      return "=";
    case ExprOp::kUlt:
      return "bvult";
    case ExprOp::kSlt:
      return "bvslt";
    case ExprOp::kConcat:
      return "concat";
    case ExprOp::kIte:
      return "ite";
    default:
      return "?";
  }
}

std::string Head(const Expr& e) {
  const uint32_t inner = e.operands[0]->width;
  switch (e.op) {
    case ExprOp::kExtract:
      return fmt::format("(_ extract {} {})", e.value + e.width - 1, e.value);
    case ExprOp::kZext:
      return fmt::format("(_ zero_extend {})", e.width - inner);
    case ExprOp::kSext:
      return fmt::format("(_ sign_extend {})", e.width - inner);
    default:
      return std::string(Name(e.op));
  }
}

std::string Leaf(const Expr& e) {
  return e.op == ExprOp::kVar ? fmt::format("v{}", e.value)
                              : fmt::format("(_ bv{} {})", e.value, e.width);
}

std::string Reference(const Expr& e) {
  return OperandCount(e.op) == 0 ? Leaf(e) : fmt::format("e{}", e.id);
}

// The operation applied to references. Truth values are vectors of width 1
// here and Bool in SMT-LIB, so predicates are wrapped.
std::string Definition(const Expr& e) {
  std::string text = "(" + Head(e);
  for (size_t i = 0; i < OperandCount(e.op); ++i) {
    const std::string reference = Reference(*e.operands[i]);
    const bool is_condition = e.op == ExprOp::kIte && i == 0;
    text += is_condition ? " (= " + reference + " #b1)" : " " + reference;
  }
  text += ")";
  const bool is_predicate =
      e.op == ExprOp::kEq || e.op == ExprOp::kUlt || e.op == ExprOp::kSlt;
  return is_predicate ? "(ite " + text + " #b1 #b0)" : text;
}

void AppendText(const Expr& e, size_t chars_max, std::string& text) {
  if (text.size() >= chars_max) {
    return;
  }
  if (OperandCount(e.op) == 0) {
    text += e.is_const() ? fmt::format("{:#x}", e.value) : Leaf(e);
    return;
  }
  text += "(" + Head(e);
  for (size_t i = 0; i < OperandCount(e.op); ++i) {
    text += " ";
    AppendText(*e.operands[i], chars_max, text);
  }
  text += ")";
}

}  // namespace

std::string ToSmtLib(const ExprPool& pool,
                     std::span<const Expr* const> conditions) {
  std::string script = "(set-logic QF_BV)\n";
  for (const Expr* e : ReachableNodes(conditions)) {
    if (e->op == ExprOp::kVar) {
      fmt::format_to(std::back_inserter(script),
                     "(declare-const v{} (_ BitVec {})) ; {}\n", e->value,
                     e->width, pool.VarName(e->var()));
    } else if (!e->is_const()) {
      fmt::format_to(std::back_inserter(script),
                     "(define-fun e{} () (_ BitVec {}) {})\n", e->id, e->width,
                     Definition(*e));
    }
  }
  for (const Expr* condition : conditions) {
    script += "(assert (= " + Reference(*condition) + " #b1))\n";
  }
  return script;
}

std::string ToText(const Expr* e, size_t chars_max) {
  std::string text;
  AppendText(*e, chars_max, text);
  if (text.size() > chars_max) {
    text.resize(chars_max);
    text += "...";
  }
  return text;
}

}  // namespace clew::constraints
