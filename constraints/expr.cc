#include "constraints/expr.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/digest.h"

namespace clew::constraints {
namespace {

bool IsCommutative(ExprOp op) {
  return op == ExprOp::kAdd || op == ExprOp::kMul || op == ExprOp::kAnd ||
         op == ExprOp::kOr || op == ExprOp::kXor || op == ExprOp::kEq;
}

bool AllConst(const std::array<const Expr*, 3>& operands) {
  return std::ranges::all_of(
      operands, [](const Expr* e) { return e == nullptr || e->is_const(); });
}

uint64_t ValueOf(const Expr* e) { return e == nullptr ? 0 : e->value; }

constexpr size_t kTableMin = 1024;

uint32_t HashOf(const Expr& e) {
  uint64_t hash = MixBits(e.value ^ (uint64_t{e.width} << 56) ^
                          (static_cast<uint64_t>(e.op) << 48));
  for (const Expr* operand : e.operands) {
    hash = (hash ^ (operand == nullptr ? 0 : operand->id + 1u)) *
           0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

bool SameStructure(const Expr& a, const Expr& b) {
  return a.op == b.op && a.width == b.width && a.value == b.value &&
         a.operands == b.operands;
}

}  // namespace

ExprPool::ExprPool(size_t nodes_max)
    : nodes_max_(nodes_max), table_(kTableMin) {}

// The slot that holds an equal node, or the free one where it belongs.
size_t ExprPool::FindSlot(const Expr& wanted, uint32_t hash) const {
  const size_t mask = table_.size() - 1;
  size_t index = hash & mask;
  while (table_[index].id_plus_1 != 0 &&
         (table_[index].hash != hash ||
          !SameStructure(nodes_[table_[index].id_plus_1 - 1], wanted))) {
    index = (index + 1) & mask;
  }
  return index;
}

void ExprPool::GrowTable() {
  std::vector<Slot> old = std::exchange(
      table_, std::vector<Slot>(std::max(kTableMin, 2 * table_.size())));
  const size_t mask = table_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id_plus_1 != 0) {
      size_t index = slot.hash & mask;
      while (table_[index].id_plus_1 != 0) {
        index = (index + 1) & mask;
      }
      table_[index] = slot;
    }
  }
}

const Expr* ExprPool::Intern(ExprOp op, uint32_t width, uint64_t value,
                             std::array<const Expr*, 3> operands) {
  CLEW_CHECK(width >= 1 && width <= kExprWidthMax, "width {}", width);
  Expr wanted{op, static_cast<uint8_t>(width),
              static_cast<uint32_t>(nodes_.size()), value, operands};
  if (OperandCount(op) > 0 && AllConst(operands)) {
    const uint64_t folded = ApplyOp(wanted, ValueOf(operands[0]),
                                    ValueOf(operands[1]), ValueOf(operands[2]));
    return Const(folded, width);
  }
  if (2 * (nodes_.size() + 1) > table_.size()) {
    GrowTable();
  }
  const uint32_t hash = HashOf(wanted);
  const size_t slot = FindSlot(wanted, hash);
  if (table_[slot].id_plus_1 == 0) {
    nodes_.push_back(wanted);
    table_[slot] = {.hash = hash,
                    .id_plus_1 = static_cast<uint32_t>(nodes_.size())};
  }
  return &nodes_[table_[slot].id_plus_1 - 1];
}

const Expr* ExprPool::Const(uint64_t value, uint32_t width) {
  CLEW_CHECK(width >= 1 && width <= kExprWidthMax, "width {}", width);
  return Intern(ExprOp::kConst, width, value & WidthMask(width), {});
}

const Expr* ExprPool::NewVar(uint32_t width, std::string name) {
  const Expr* var = Intern(ExprOp::kVar, width, var_names_.size(), {});
  var_names_.push_back(std::move(name));
  return var;
}

const std::string& ExprPool::VarName(VarId id) const {
  CLEW_CHECK(id.as_int() < var_names_.size(), "no variable {}", id);
  return var_names_[id.as_int()];
}

const Expr* ExprPool::MakeBinary(ExprOp op, uint32_t width, const Expr* a,
                                 const Expr* b) {
  CLEW_CHECK(a->width == b->width, "operands of {} and {} bits", a->width,
             b->width);
  const bool swap =
      IsCommutative(op) && !b->is_const() && (a->is_const() || a->id > b->id);
  return swap ? Intern(op, width, 0, {b, a, nullptr})
              : Intern(op, width, 0, {a, b, nullptr});
}

const Expr* ExprPool::Binary(ExprOp op, const Expr* a, const Expr* b) {
  switch (op) {
    case ExprOp::kAdd:
      return Add(a, b);
    case ExprOp::kSub:
      return Sub(a, b);
    case ExprOp::kMul:
      return Mul(a, b);
    case ExprOp::kUdiv:
      return Udiv(a, b);
    case ExprOp::kUrem:
      return Urem(a, b);
    case ExprOp::kSdiv:
      return Sdiv(a, b);
    case ExprOp::kSrem:
      return Srem(a, b);
    case ExprOp::kAnd:
      return And(a, b);
    case ExprOp::kOr:
      return Or(a, b);
    case ExprOp::kXor:
      return Xor(a, b);
    case ExprOp::kShl:
      return Shl(a, b);
    case ExprOp::kLshr:
      return Lshr(a, b);
    case ExprOp::kAshr:
      return Ashr(a, b);
    case ExprOp::kEq:
      return Eq(a, b);
    case ExprOp::kUlt:
      return Ult(a, b);
    case ExprOp::kSlt:
      return Slt(a, b);
    default:
      break;
  }
  CLEW_CHECK(false, "operation {} has not two operands of one width",
             static_cast<int>(op));
  return nullptr;
}

}  // namespace clew::constraints
