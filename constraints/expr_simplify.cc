#include <utility>

#include "common/check.h"
#include "constraints/expr.h"

// The building functions, each with the identities it applies. Folding of
// constants is in ExprPool::Intern. Identities are oriented so that nodes only
// get smaller or move constants to the right, so they end.

namespace clew::constraints {
namespace {

uint64_t AllOnes(const Expr* e) { return WidthMask(e->width); }

// For a commutative operation: constants to the right.
void ConstantToTheRight(const Expr*& a, const Expr*& b) {
  if (a->is_const() && !b->is_const()) {
    std::swap(a, b);
  }
}

}  // namespace

const Expr* ExprPool::Add(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (b->IsConst(0)) {
    return a;
  }
  if (b->is_const() && a->op == ExprOp::kAdd && a->operands[1]->is_const()) {
    return Add(a->operands[0],
               Const(a->operands[1]->value + b->value, a->width));
  }
  return MakeBinary(ExprOp::kAdd, a->width, a, b);
}

const Expr* ExprPool::Sub(const Expr* a, const Expr* b) {
  if (a == b) {
    return Const(0, a->width);
  }
  if (b->is_const()) {
    return Add(a, Const(0 - b->value, a->width));
  }
  return MakeBinary(ExprOp::kSub, a->width, a, b);
}

const Expr* ExprPool::Mul(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (b->IsConst(0) || b->IsConst(1)) {
    return b->value == 0 ? b : a;
  }
  return MakeBinary(ExprOp::kMul, a->width, a, b);
}

const Expr* ExprPool::Udiv(const Expr* a, const Expr* b) {
  return b->IsConst(1) ? a : MakeBinary(ExprOp::kUdiv, a->width, a, b);
}

const Expr* ExprPool::Urem(const Expr* a, const Expr* b) {
  return b->IsConst(1) ? Const(0, a->width)
                       : MakeBinary(ExprOp::kUrem, a->width, a, b);
}

const Expr* ExprPool::Sdiv(const Expr* a, const Expr* b) {
  // At width 1 the constant 1 is -1.
  return b->IsConst(1) && b->width > 1
             ? a
             : MakeBinary(ExprOp::kSdiv, a->width, a, b);
}

const Expr* ExprPool::Srem(const Expr* a, const Expr* b) {
  return MakeBinary(ExprOp::kSrem, a->width, a, b);
}

const Expr* ExprPool::And(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (a == b || b->IsConst(AllOnes(b))) {
    return a;
  }
  if (b->IsConst(0)) {
    return b;
  }
  if (b->is_const() && a->op == ExprOp::kAnd && a->operands[1]->is_const()) {
    return And(a->operands[0],
               Const(a->operands[1]->value & b->value, a->width));
  }
  return MakeBinary(ExprOp::kAnd, a->width, a, b);
}

const Expr* ExprPool::Or(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (a == b || b->IsConst(0)) {
    return a;
  }
  if (b->IsConst(AllOnes(b))) {
    return b;
  }
  return MakeBinary(ExprOp::kOr, a->width, a, b);
}

const Expr* ExprPool::Xor(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (a == b) {
    return Const(0, a->width);
  }
  if (b->IsConst(0)) {
    return a;
  }
  if (b->IsConst(AllOnes(b))) {
    return Not(a);
  }
  return MakeBinary(ExprOp::kXor, a->width, a, b);
}

const Expr* ExprPool::Shl(const Expr* a, const Expr* b) {
  return b->IsConst(0) ? a : MakeBinary(ExprOp::kShl, a->width, a, b);
}

const Expr* ExprPool::Lshr(const Expr* a, const Expr* b) {
  return b->IsConst(0) ? a : MakeBinary(ExprOp::kLshr, a->width, a, b);
}

const Expr* ExprPool::Ashr(const Expr* a, const Expr* b) {
  return b->IsConst(0) ? a : MakeBinary(ExprOp::kAshr, a->width, a, b);
}

const Expr* ExprPool::Eq(const Expr* a, const Expr* b) {
  ConstantToTheRight(a, b);
  if (a == b) {
    return Bool(true);
  }
  if (a->width == 1 && b->is_const()) {
    return b->value == 1 ? a : Not(a);
  }
  if (b->is_const() && a->op == ExprOp::kZext) {
    const Expr* inner = a->operands[0];
    return (b->value & ~WidthMask(inner->width)) != 0
               ? Bool(false)
               : Eq(inner, Const(b->value, inner->width));
  }
  return MakeBinary(ExprOp::kEq, 1, a, b);
}

const Expr* ExprPool::Ult(const Expr* a, const Expr* b) {
  if (a == b || b->IsConst(0)) {
    return Bool(false);
  }
  return MakeBinary(ExprOp::kUlt, 1, a, b);
}

const Expr* ExprPool::Slt(const Expr* a, const Expr* b) {
  return a == b ? Bool(false) : MakeBinary(ExprOp::kSlt, 1, a, b);
}

const Expr* ExprPool::Not(const Expr* a) {
  return a->op == ExprOp::kNot ? a->operands[0]
                               : Intern(ExprOp::kNot, a->width, 0, {a});
}

const Expr* ExprPool::Neg(const Expr* a) {
  return a->op == ExprOp::kNeg ? a->operands[0]
                               : Intern(ExprOp::kNeg, a->width, 0, {a});
}

const Expr* ExprPool::Concat(const Expr* upper, const Expr* lower) {
  const uint32_t width = uint32_t{upper->width} + lower->width;
  CLEW_CHECK(width <= kExprWidthMax, "concatenation of {} bits", width);
  if (upper->IsConst(0)) {
    return Zext(lower, width);
  }
  if (upper->op == ExprOp::kExtract && lower->op == ExprOp::kExtract &&
      upper->operands[0] == lower->operands[0] &&
      upper->value == lower->value + lower->width) {
    return Extract(upper->operands[0], static_cast<uint32_t>(lower->value),
                   width);
  }
  // ((x ++ e1) ++ e2) with adjacent extracts e1, e2: merge those.
  if (upper->op == ExprOp::kConcat && lower->op == ExprOp::kExtract &&
      upper->operands[1]->op == ExprOp::kExtract &&
      upper->operands[1]->operands[0] == lower->operands[0] &&
      upper->operands[1]->value == lower->value + lower->width) {
    return Concat(upper->operands[0], Concat(upper->operands[1], lower));
  }
  return Intern(ExprOp::kConcat, width, 0, {upper, lower});
}

const Expr* ExprPool::ExtractOfConcat(const Expr* a, uint32_t low,
                                      uint32_t width) {
  const Expr* lower = a->operands[1];
  if (low + width <= lower->width) {
    return Extract(lower, low, width);
  }
  if (low >= lower->width) {
    return Extract(a->operands[0], low - lower->width, width);
  }
  return Intern(ExprOp::kExtract, width, low, {a});
}

const Expr* ExprPool::ExtractOfExtension(const Expr* a, uint32_t low,
                                         uint32_t width) {
  const Expr* inner = a->operands[0];
  if (low + width <= inner->width) {
    return Extract(inner, low, width);
  }
  if (a->op == ExprOp::kZext && low >= inner->width) {
    return Const(0, width);
  }
  if (low == 0) {
    return a->op == ExprOp::kZext ? Zext(inner, width) : Sext(inner, width);
  }
  return Intern(ExprOp::kExtract, width, low, {a});
}

const Expr* ExprPool::Extract(const Expr* a, uint32_t low, uint32_t width) {
  CLEW_CHECK(width >= 1 && uint64_t{low} + width <= a->width,
             "bits {}+{} of {} bits", low, width, a->width);
  if (width == a->width) {
    return a;
  }
  switch (a->op) {
    case ExprOp::kExtract:
      return Extract(a->operands[0], static_cast<uint32_t>(a->value) + low,
                     width);
    case ExprOp::kConcat:
      return ExtractOfConcat(a, low, width);
    case ExprOp::kZext:
    case ExprOp::kSext:
      return ExtractOfExtension(a, low, width);
    default:
      return Intern(ExprOp::kExtract, width, low, {a});
  }
}

const Expr* ExprPool::Zext(const Expr* a, uint32_t width) {
  CLEW_CHECK(width >= a->width, "zext of {} to {} bits", a->width, width);
  if (width == a->width) {
    return a;
  }
  return a->op == ExprOp::kZext ? Zext(a->operands[0], width)
                                : Intern(ExprOp::kZext, width, 0, {a});
}

const Expr* ExprPool::Sext(const Expr* a, uint32_t width) {
  CLEW_CHECK(width >= a->width, "sext of {} to {} bits", a->width, width);
  if (width == a->width) {
    return a;
  }
  if (a->op == ExprOp::kZext) {  // its sign bit is 0
    return Zext(a->operands[0], width);
  }
  return a->op == ExprOp::kSext ? Sext(a->operands[0], width)
                                : Intern(ExprOp::kSext, width, 0, {a});
}

const Expr* ExprPool::Ite(const Expr* condition, const Expr* then_value,
                          const Expr* else_value) {
  CLEW_CHECK(condition->width == 1, "condition of {} bits", condition->width);
  CLEW_CHECK(then_value->width == else_value->width, "ite of {} and {} bits",
             then_value->width, else_value->width);
  if (then_value == else_value) {
    return then_value;
  }
  if (condition->is_const()) {
    return condition->value != 0 ? then_value : else_value;
  }
  if (then_value->width == 1 && then_value->IsConst(1) &&
      else_value->IsConst(0)) {
    return condition;
  }
  return Intern(ExprOp::kIte, then_value->width, 0,
                {condition, then_value, else_value});
}

}  // namespace clew::constraints
