#ifndef CLEW_SOLVER_SMT_Z3_TRANSLATOR_H_
#define CLEW_SOLVER_SMT_Z3_TRANSLATOR_H_

#include <z3++.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "constraints/expr.h"

namespace clew::solver {

// Translates our expressions into Z3's bit vectors, each node once.
class Z3Translator {
 public:
  explicit Z3Translator(z3::context& context) : context_(context) {}

  z3::expr Translate(const constraints::Expr* root);
  z3::expr Number(uint64_t value, uint32_t width_bits);

 private:
  z3::expr Operand(const constraints::Expr& e, size_t i) const;
  z3::expr Make(const constraints::Expr& e);
  z3::expr MakeLeaf(const constraints::Expr& e);
  static z3::expr MakeUnary(const constraints::Expr& e, const z3::expr& a);
  static z3::expr MakeBinary(const constraints::Expr& e, const z3::expr& a,
                             const z3::expr& b);

  z3::context& context_;
  std::unordered_map<const constraints::Expr*, z3::expr> done_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_Z3_TRANSLATOR_H_
