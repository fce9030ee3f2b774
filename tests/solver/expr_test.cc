// Goal: expressions mean what SMT-LIB says, whatever is simplified on the way;
// equal structure is one node; the SMT-LIB text says the same.
// Method: exhaustive for all operations at small widths; property for random
// expressions at all widths. Oracles: definitions over wide integers written
// down here, and Z3 for the text.

#include "constraints/expr.h"

#include <gtest/gtest.h>
#include <z3++.h>

#include <cstdlib>
#include <vector>

#include "common/digest.h"
#include "constraints/expr_eval.h"

namespace clew::constraints {
namespace {

__extension__ typedef __int128 Wide;

constexpr ExprOp kBinaryOps[] = {
    ExprOp::kAdd,  ExprOp::kSub,  ExprOp::kMul,  ExprOp::kUdiv,
    ExprOp::kUrem, ExprOp::kSdiv, ExprOp::kSrem, ExprOp::kAnd,
    ExprOp::kOr,   ExprOp::kXor,  ExprOp::kShl,  ExprOp::kLshr,
    ExprOp::kAshr, ExprOp::kEq,   ExprOp::kUlt,  ExprOp::kSlt};

Wide Signed(uint64_t value, uint32_t width) {
  const Wide half = Wide{1} << (width - 1);
  return Wide{value} >= half ? Wide{value} - 2 * half : Wide{value};
}

uint64_t Cut(Wide value, uint32_t width) {
  return static_cast<uint64_t>(value) & WidthMask(width);
}

uint64_t Expected(ExprOp op, uint64_t a, uint64_t b, uint32_t w) {
  const Wide sa = Signed(a, w);
  const Wide sb = Signed(b, w);
  switch (op) {
    case ExprOp::kAdd:
      return Cut(Wide{a} + b, w);
    case ExprOp::kSub:
      return Cut(Wide{a} - b, w);
    case ExprOp::kMul:
      return Cut(Wide{a * b}, w);
    case ExprOp::kUdiv:
      return b == 0 ? WidthMask(w) : a / b;
    case ExprOp::kUrem:
      return b == 0 ? a : a % b;
    case ExprOp::kSdiv:
      return Cut(sb == 0 ? (sa < 0 ? 1 : -1) : sa / sb, w);
    case ExprOp::kSrem:
      return Cut(sb == 0 ? sa : sa % sb, w);
    case ExprOp::kAnd:
      return a & b;
    case ExprOp::kOr:
      return a | b;
    case ExprOp::kXor:
      return a ^ b;
    case ExprOp::kShl:
      return b >= w ? 0 : Cut(Wide{a} << b, w);
    case ExprOp::kLshr:
      return b >= w ? 0 : a >> b;
    case ExprOp::kAshr:
      return Cut(sa >> std::min<uint64_t>(b, 100), w);
    case ExprOp::kEq:
      return a == b ? 1 : 0;
    case ExprOp::kUlt:
      return a < b ? 1 : 0;
    case ExprOp::kSlt:
      return sa < sb ? 1 : 0;
    default:
      return ~uint64_t{0};
  }
}

uint64_t ValueUnder(const Expr* e, const Assignment& assignment) {
  return Evaluator(assignment).Evaluate(e).value();
}

TEST(ExprTest, EveryOperationOnEveryPairOfSmallValues) {
  for (uint32_t width : {1u, 2u, 4u}) {
    ExprPool pool;
    const Expr* x = pool.NewVar(width, "x");
    const Expr* y = pool.NewVar(width, "y");
    for (ExprOp op : kBinaryOps) {
      const Expr* on_vars = pool.Binary(op, x, y);
      for (uint64_t pair = 0; pair < uint64_t{1} << (2 * width); ++pair) {
        const uint64_t a = pair >> width;
        const uint64_t b = pair & WidthMask(width);
        Assignment values;
        values.Set(x->var(), a);
        values.Set(y->var(), b);
        const uint64_t expected = Expected(op, a, b, width);
        SCOPED_TRACE(fmt::format("op {} width {}: {} {}", static_cast<int>(op),
                                 width, a, b));
        EXPECT_EQ(ValueUnder(on_vars, values), expected);
        const Expr* ca = pool.Const(a, width);
        const Expr* cb = pool.Const(b, width);
        EXPECT_TRUE(pool.Binary(op, ca, cb)->IsConst(expected));
        EXPECT_EQ(ValueUnder(pool.Binary(op, x, cb), values), expected);
        EXPECT_EQ(ValueUnder(pool.Binary(op, ca, y), values), expected);
      }
      for (uint64_t a = 0; a <= WidthMask(width); ++a) {
        Assignment values;
        values.Set(x->var(), a);
        EXPECT_EQ(ValueUnder(pool.Binary(op, x, x), values),
                  Expected(op, a, a, width));
      }
    }
  }
}

// An expression and its value under the assignment, computed along the way.
struct Known {
  const Expr* e;
  uint64_t value;
};

class RandomExprs {
 public:
  RandomExprs(ExprPool& pool, uint64_t seed) : pool_(pool), random_(seed) {
    for (uint32_t width : {1u, 8u, 8u, 16u, 32u, 64u}) {
      const Expr* var = pool.NewVar(width, "input");
      const uint64_t value = Number(width);
      values.Set(var->var(), value);
      all.push_back({var, value});
      all.push_back({pool.Const(value, width), value});
    }
  }

  void Grow() {
    const Known a = Pick();
    switch (random_.Below(7)) {
      case 0:
        Add(pool_.Not(a.e), ~a.value);
        return;
      case 1:
        Add(pool_.Neg(a.e), 0 - a.value);
        return;
      case 2:
        GrowExtract(a);
        return;
      case 3:
        GrowWider(a);
        return;
      case 4:
        GrowIte(a);
        return;
      default:
        GrowBinary(a);
        return;
    }
  }

  Assignment values;
  std::vector<Known> all;

 private:
  uint64_t Number(uint32_t width) {
    constexpr uint64_t kSpecial[] = {0, 1, ~uint64_t{0}, 0x80, 0x7f};
    const uint64_t choice = random_.Below(8);
    return (choice < 5 ? kSpecial[choice] : random_.Next()) & WidthMask(width);
  }
  Known Pick() { return all[random_.Below(all.size())]; }
  Known PickOfWidth(uint32_t width) {
    for (int i = 0; i < 20; ++i) {
      const Known known = Pick();
      if (known.e->width == width) {
        return known;
      }
    }
    const uint64_t value = Number(width);
    return {pool_.Const(value, width), value};
  }
  void Add(const Expr* e, uint64_t value) {
    all.push_back({e, value & WidthMask(e->width)});
  }
  void GrowExtract(Known a) {
    const auto low = static_cast<uint32_t>(random_.Below(a.e->width));
    const auto width =
        1 + static_cast<uint32_t>(random_.Below(a.e->width - low));
    Add(pool_.Extract(a.e, low, width), a.value >> low);
  }
  void GrowWider(Known a) {
    const Known b = Pick();
    const uint32_t sum = uint32_t{a.e->width} + b.e->width;
    if (sum > kExprWidthMax) {
      return;
    }
    Add(pool_.Concat(a.e, b.e), a.value << b.e->width | b.value);
    Add(pool_.Zext(a.e, sum), a.value);
    Add(pool_.Sext(a.e, sum),
        static_cast<uint64_t>(Signed(a.value, a.e->width)));
  }
  void GrowIte(Known a) {
    const Known b = PickOfWidth(a.e->width);
    const Known c = PickOfWidth(1);
    Add(pool_.Ite(c.e, a.e, b.e), c.value == 1 ? a.value : b.value);
  }
  void GrowBinary(Known a) {
    const Known b = PickOfWidth(a.e->width);
    const ExprOp op = kBinaryOps[random_.Below(std::size(kBinaryOps))];
    Add(pool_.Binary(op, a.e, b.e), Expected(op, a.value, b.value, a.e->width));
  }

  ExprPool& pool_;
  Random random_;
};

TEST(ExprTest, RandomExpressionsKeepTheirValueThroughSimplification) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ExprPool pool;
    RandomExprs exprs(pool, seed);
    for (int i = 0; i < 100; ++i) {
      exprs.Grow();
    }
    Evaluator evaluator(exprs.values);
    for (const Known& known : exprs.all) {
      ASSERT_EQ(evaluator.Evaluate(known.e), known.value) << ToText(known.e);
    }
  }
}

TEST(ExprTest, SmtLibTextMeansTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ExprPool pool;
    RandomExprs exprs(pool, seed);
    for (int i = 0; i < 40; ++i) {
      exprs.Grow();
    }
    std::vector<const Expr*> conditions;
    for (const Known& known : exprs.all) {
      conditions.push_back(
          pool.Eq(known.e, pool.Const(known.value, known.e->width)));
    }
    z3::context context;
    z3::solver solver(context);
    solver.from_string(ToSmtLib(pool, conditions).c_str());
    EXPECT_EQ(solver.check(), z3::sat);  // the inputs are fixed by equalities
    const Expr* wrong = pool.Not(conditions[conditions.size() / 2]);
    if (!wrong->is_const()) {
      conditions.push_back(wrong);
      z3::solver other(context);
      other.from_string(ToSmtLib(pool, conditions).c_str());
      EXPECT_EQ(other.check(), z3::unsat);
    }
  }
}

TEST(ExprTest, EqualStructureIsOneNode) {
  ExprPool pool;
  const Expr* x = pool.NewVar(32, "x");
  const Expr* y = pool.NewVar(32, "y");
  EXPECT_EQ(pool.Add(x, y), pool.Add(y, x));
  EXPECT_EQ(pool.Add(pool.Add(x, pool.Const(1, 32)), pool.Const(2, 32)),
            pool.Add(pool.Const(3, 32), x));
  EXPECT_NE(pool.Sub(x, y), pool.Sub(y, x));
}

TEST(ExprTest, AValueStoredByBytesComesBackWhole) {
  ExprPool pool;
  const Expr* x = pool.NewVar(32, "x");
  const Expr* joined = pool.Extract(x, 24, 8);
  for (uint32_t byte = 3; byte-- > 0;) {
    joined = pool.Concat(joined, pool.Extract(x, 8 * byte, 8));
  }
  EXPECT_EQ(joined, x);
}

TEST(ExprTest, AnUnknownVariableHasNoValue) {
  ExprPool pool;
  const Expr* x = pool.NewVar(8, "x");
  const Expr* y = pool.NewVar(8, "y");
  Assignment values;
  values.Set(x->var(), 3);
  Evaluator evaluator(values);
  EXPECT_EQ(evaluator.Evaluate(pool.Add(x, y)), std::nullopt);
  values.Set(y->var(), 4);
  EXPECT_EQ(evaluator.Evaluate(pool.Add(x, y)), 7u);
  EXPECT_EQ(VariablesOf(pool.Add(x, y)),
            (std::vector<VarId>{x->var(), y->var()}));
}

TEST(ExprTest, AnEndlessChainIsEvaluatedWithoutRecursion) {
  ExprPool pool;
  const Expr* x = pool.NewVar(32, "x");
  const Expr* chain = x;
  for (int i = 0; i < 300'000; ++i) {
    chain = pool.Xor(pool.Add(chain, x), x);
  }
  Assignment values;
  values.Set(x->var(), 0);
  EXPECT_EQ(ValueUnder(chain, values), 0u);
}

}  // namespace
}  // namespace clew::constraints
