#ifndef CLEW_CONSTRAINTS_EXPR_H_
#define CLEW_CONSTRAINTS_EXPR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/units.h"

namespace clew::constraints {

// A value that is not known: what a read returned, or unknown initial memory.
// Numbered from 0 within its pool.
using VarId = StrongInt<struct VarIdTag, uint32_t>;

// Operations on bit vectors with the meaning of SMT-LIB's QF_BV, also where a
// CPU would fault or mask: x udiv 0 is all ones, x urem 0 is x, a shift by the
// width or more gives 0 (or the sign). Truth values are vectors of width 1.
enum class ExprOp : uint8_t {
  kConst,
  kVar,
  kNot,
  kNeg,
  kAdd,
  kSub,
  kMul,
  kUdiv,
  kUrem,
  kSdiv,
  kSrem,
  kAnd,
  kOr,
  kXor,
  kShl,
  kLshr,
  kAshr,
  kEq,      // width 1
  kUlt,     // width 1
  kSlt,     // width 1
  kConcat,  // operand 0 holds the upper bits
  kExtract,
  kZext,
  kSext,
  kIte,  // operand 0 has width 1
};

inline constexpr uint32_t kExprWidthMax = 64;

// One node; immutable, owned by its pool, shared: within a pool two
// expressions are equal in structure if and only if their addresses are equal.
struct Expr {
  ExprOp op;
  uint8_t width;   // 1..kExprWidthMax
  uint32_t id;     // dense; operands have smaller ids than what uses them
  uint64_t value;  // kConst: the value; kVar: VarId; kExtract: lowest bit
  std::array<const Expr*, 3> operands;  // unused ones are nullptr

  bool is_const() const { return op == ExprOp::kConst; }
  bool IsConst(uint64_t wanted) const { return is_const() && value == wanted; }
  // REQUIRES: op is kVar.
  VarId var() const { return VarId(static_cast<uint32_t>(value)); }
};

// Returns the number of operands of the operation, 0 to 3.
size_t OperandCount(ExprOp op);

// Returns a value with the lowest `width` bits set. REQUIRES: width is in
// 1..64.
constexpr uint64_t WidthMask(uint32_t width) {
  return ~uint64_t{0} >> (kExprWidthMax - width);
}

// Makes and owns expressions. Every function simplifies lightly (constants,
// neutral elements, concatenations of adjacent extracts) and returns a pointer
// that lives as long as the pool. Not thread-safe. Costs about 100 bytes a
// node; nodes are never freed, so a caller that builds without end asks full().
class ExprPool {
 public:
  static constexpr size_t kNodesMaxDefault = 50'000'000;

  explicit ExprPool(size_t nodes_max = kNodesMaxDefault);
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  // Makes a constant. The value is cut to the width.
  const Expr* Const(uint64_t value, uint32_t width);
  const Expr* Bool(bool value) { return Const(value ? 1 : 0, 1); }
  // Makes a new variable; `name` is for people and need not be unique.
  const Expr* NewVar(uint32_t width, std::string name);
  // Returns the name of a variable. REQUIRES: this pool made it.
  const std::string& VarName(VarId id) const;

  // Makes the operation of this name. REQUIRES: the operands have equal width.
  const Expr* Add(const Expr* a, const Expr* b);
  const Expr* Sub(const Expr* a, const Expr* b);
  const Expr* Mul(const Expr* a, const Expr* b);
  const Expr* Udiv(const Expr* a, const Expr* b);
  const Expr* Urem(const Expr* a, const Expr* b);
  const Expr* Sdiv(const Expr* a, const Expr* b);
  const Expr* Srem(const Expr* a, const Expr* b);
  const Expr* And(const Expr* a, const Expr* b);
  const Expr* Or(const Expr* a, const Expr* b);
  const Expr* Xor(const Expr* a, const Expr* b);
  const Expr* Shl(const Expr* a, const Expr* b);
  const Expr* Lshr(const Expr* a, const Expr* b);
  const Expr* Ashr(const Expr* a, const Expr* b);
  const Expr* Eq(const Expr* a, const Expr* b);
  const Expr* Ult(const Expr* a, const Expr* b);
  const Expr* Slt(const Expr* a, const Expr* b);
  // Makes any of the two-operand operations above, kAdd..kSlt.
  const Expr* Binary(ExprOp op, const Expr* a, const Expr* b);

  const Expr* Not(const Expr* a);
  const Expr* Neg(const Expr* a);
  // Joins the bits of both. REQUIRES: the sum of the widths is at most 64.
  const Expr* Concat(const Expr* upper, const Expr* lower);
  // Takes bits low .. low + width - 1. REQUIRES: they exist.
  const Expr* Extract(const Expr* a, uint32_t low, uint32_t width);
  // Widens with zeros, or with the sign. REQUIRES: width >= a->width.
  const Expr* Zext(const Expr* a, uint32_t width);
  const Expr* Sext(const Expr* a, uint32_t width);
  // Makes a choice. REQUIRES: `condition` has width 1; the others have equal
  // width.
  const Expr* Ite(const Expr* condition, const Expr* then_value,
                  const Expr* else_value);

  size_t node_count() const { return nodes_.size(); }
  // Returns whether the pool has as many nodes as it was made for: stop
  // building. (Making nodes still works, so that one instruction can be
  // completed.)
  bool full() const { return nodes_.size() >= nodes_max_; }

 private:
  // A place of the hash table: open addressing, linear probing, at most half
  // full.
  struct Slot {
    uint32_t hash = 0;
    uint32_t id_plus_1 = 0;  // 0: free
  };

  size_t FindSlot(const Expr& wanted, uint32_t hash) const;
  void GrowTable();
  const Expr* Intern(ExprOp op, uint32_t width, uint64_t value,
                     std::array<const Expr*, 3> operands);
  const Expr* MakeBinary(ExprOp op, uint32_t width, const Expr* a,
                         const Expr* b);
  const Expr* ExtractOfConcat(const Expr* a, uint32_t low, uint32_t width);
  const Expr* ExtractOfExtension(const Expr* a, uint32_t low, uint32_t width);

  size_t nodes_max_;
  std::deque<Expr> nodes_;   // a deque: addresses are stable
  std::vector<Slot> table_;  // a power of two of them
  std::vector<std::string> var_names_;
};

// Applies one operation to known operand values. `e` gives operation and
// widths; unused values are ignored. REQUIRES: e is not a kVar.
uint64_t ApplyOp(const Expr& e, uint64_t a, uint64_t b, uint64_t c);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_EXPR_H_
