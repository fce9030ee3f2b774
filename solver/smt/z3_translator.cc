#include "solver/smt/z3_translator.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace clew::solver {
namespace {

using constraints::Expr;
using constraints::ExprOp;

// Expressions have truth values as vectors of width 1, Z3 as Booleans.
z3::expr ToBit(const z3::expr& condition) {
  z3::context& c = condition.ctx();
  return z3::ite(condition, c.bv_val(1, 1), c.bv_val(0, 1));
}

}  // namespace

// Operands first, by a stack of its own: a hash over a thousand reads is an
// expression a thousand deep. What is shared is translated once.
z3::expr Z3Translator::Translate(const Expr* root) {
  if (const auto known = done_.find(root); known != done_.end()) {
    return known->second;
  }
  std::vector<const Expr*> stack = {root};
  while (!stack.empty()) {
    const Expr* e = stack.back();
    const size_t before = stack.size();
    for (const Expr* operand : e->operands) {
      if (operand != nullptr && !done_.contains(operand)) {
        stack.push_back(operand);
      }
    }
    if (stack.size() == before) {
      stack.pop_back();
      done_.try_emplace(e, Make(*e));
    }
  }
  return done_.at(root);
}

z3::expr Z3Translator::Number(uint64_t value, uint32_t width_bits) {
  return context_.bv_val(value, width_bits);
}

z3::expr Z3Translator::Operand(const Expr& e, size_t i) const {
  return done_.at(e.operands[i]);
}

z3::expr Z3Translator::Make(const Expr& e) {
  switch (OperandCount(e.op)) {
    case 0:
      return MakeLeaf(e);
    case 1:
      return MakeUnary(e, Operand(e, 0));
    case 2:
      return MakeBinary(e, Operand(e, 0), Operand(e, 1));
    default:
      return z3::ite(Operand(e, 0) == Number(1, 1), Operand(e, 1),
                     Operand(e, 2));
  }
}

z3::expr Z3Translator::MakeLeaf(const Expr& e) {
  return e.is_const()
             ? Number(e.value, e.width)
             : context_.bv_const(fmt::format("v{}", e.value).c_str(), e.width);
}

z3::expr Z3Translator::MakeUnary(const Expr& e, const z3::expr& a) {
  const uint32_t more =
      e.width - std::min<uint32_t>(e.width, e.operands[0]->width);
  switch (e.op) {
    case ExprOp::kNot:
      return ~a;
    case ExprOp::kNeg:
      return -a;
    case ExprOp::kZext:
      return z3::zext(a, more);
    case ExprOp::kSext:
      return z3::sext(a, more);
    default:
      return a.extract(static_cast<unsigned>(e.value) + e.width - 1,
                       static_cast<unsigned>(e.value));
  }
}

// Division by zero and shifts beyond the width mean in SMT-LIB what they mean
// to ApplyOp (constraints/expr.h): all ones, the dividend, zeros or the sign.
z3::expr Z3Translator::MakeBinary(const Expr& e, const z3::expr& a,
                                  const z3::expr& b) {
  switch (e.op) {
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kSub:
      return a - b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kUdiv:
      return z3::udiv(a, b);
    case ExprOp::kUrem:
      return z3::urem(a, b);
    case ExprOp::kSdiv:
      return a / b;
    case ExprOp::kSrem:
      return z3::srem(a, b);
    case ExprOp::kAnd:
      return a & b;
    case ExprOp::kOr:
      return a | b;
    case ExprOp::kXor:
      return a ^ b;
    case ExprOp::kShl:
      return z3::shl(a, b);
    case ExprOp::kLshr:
      return z3::lshr(a, b);
    case ExprOp::kAshr:
      return z3::ashr(a, b);
    case ExprOp::kEq:
      return ToBit(a == b);
    case ExprOp::kUlt:
      return ToBit(z3::ult(a, b));
    case ExprOp::kSlt:
      return ToBit(z3::slt(a, b));
    default:
      return z3::concat(a, b);
  }
}

}  // namespace clew::solver
