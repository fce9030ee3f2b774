#include <bit>

#include "common/check.h"
#include "constraints/expr.h"

namespace clew::constraints {
namespace {

uint64_t SignExtend(uint64_t value, uint32_t width) {
  const uint32_t unused = kExprWidthMax - width;
  return static_cast<uint64_t>(std::bit_cast<int64_t>(value << unused) >>
                               unused);
}

bool IsNegative(uint64_t value, uint32_t width) {
  return ((value >> (width - 1)) & 1) != 0;
}

uint64_t Magnitude(uint64_t value, uint32_t width) {
  return (IsNegative(value, width) ? 0 - value : value) & WidthMask(width);
}

uint64_t Udiv(uint64_t a, uint64_t b) { return b == 0 ? ~uint64_t{0} : a / b; }
uint64_t Urem(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }

// SMT-LIB defines the signed ones through the unsigned ones on magnitudes.
uint64_t Sdiv(uint64_t a, uint64_t b, uint32_t width) {
  const uint64_t quotient =
      Udiv(Magnitude(a, width), Magnitude(b, width)) & WidthMask(width);
  const bool negate = IsNegative(a, width) != IsNegative(b, width);
  return negate ? 0 - quotient : quotient;
}

uint64_t Srem(uint64_t a, uint64_t b, uint32_t width) {
  const uint64_t remainder = Urem(Magnitude(a, width), Magnitude(b, width));
  return IsNegative(a, width) ? 0 - remainder : remainder;
}

uint64_t ShiftRightSigned(uint64_t a, uint64_t b, uint32_t width) {
  const uint64_t count = b < width ? b : width - 1;
  return static_cast<uint64_t>(std::bit_cast<int64_t>(SignExtend(a, width)) >>
                               count);
}

bool SignedLess(uint64_t a, uint64_t b, uint32_t width) {
  return std::bit_cast<int64_t>(SignExtend(a, width)) <
         std::bit_cast<int64_t>(SignExtend(b, width));
}

uint64_t Apply(const Expr& e, uint64_t a, uint64_t b, uint64_t c) {
  const uint32_t width = e.width;
  switch (e.op) {
    case ExprOp::kConst:
      return e.value;
    case ExprOp::kVar:
      break;
    case ExprOp::kNot:
      return ~a;
    case ExprOp::kNeg:
      return 0 - a;
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kSub:
      return a - b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kUdiv:
      return Udiv(a, b);
    case ExprOp::kUrem:
      return Urem(a, b);
    case ExprOp::kSdiv:
      return Sdiv(a, b, width);
    case ExprOp::kSrem:
      return Srem(a, b, width);
    case ExprOp::kAnd:
      return a & b;
    case ExprOp::kOr:
      return a | b;
    case ExprOp::kXor:
      return a ^ b;
    case ExprOp::kShl:
      return b < width ? a << b : 0;
    case ExprOp::kLshr:
      return b < width ? a >> b : 0;
    case ExprOp::kAshr:
      return ShiftRightSigned(a, b, width);
    case ExprOp::kEq:
      return a == b ? 1 : 0;
    case ExprOp::kUlt:
      return a < b ? 1 : 0;
    case ExprOp::kSlt:
      return SignedLess(a, b, e.operands[0]->width) ? 1 : 0;
    case ExprOp::kConcat:
      return a << e.operands[1]->width | b;
    case ExprOp::kExtract:
      return a >> e.value;
    case ExprOp::kZext:
      return a;
    case ExprOp::kSext:
      return SignExtend(a, e.operands[0]->width);
    case ExprOp::kIte:
      return a != 0 ? b : c;
  }
  CLEW_CHECK(false, "a variable has no value of its own (op {})",
             static_cast<int>(e.op));
  return 0;
}

}  // namespace

uint64_t ApplyOp(const Expr& e, uint64_t a, uint64_t b, uint64_t c) {
  return Apply(e, a, b, c) & WidthMask(e.width);
}

size_t OperandCount(ExprOp op) {
  switch (op) {
    case ExprOp::kConst:
    case ExprOp::kVar:
      return 0;
    case ExprOp::kNot:
    case ExprOp::kNeg:
    case ExprOp::kExtract:
    case ExprOp::kZext:
    case ExprOp::kSext:
      return 1;
    case ExprOp::kIte:
      return 3;
    default:
      return 2;
  }
}

}  // namespace clew::constraints
