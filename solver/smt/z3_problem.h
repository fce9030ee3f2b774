#ifndef CLEW_SOLVER_SMT_Z3_PROBLEM_H_
#define CLEW_SOLVER_SMT_Z3_PROBLEM_H_

#include <z3++.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "constraints/expr.h"
#include "constraints/locations.h"
#include "constraints/must_order.h"
#include "constraints/trace.h"
#include "solver/smt/z3_backend.h"
#include "solver/smt/z3_translator.h"

namespace clew::solver {

// What all encodings of a trace share: a solver, the values of reads and
// writes, the conditions of the paths, and the groups of both as assumptions,
// so that an answer kUnsat names the groups that conflict.
class Z3Problem {
 public:
  // All are borrowed.
  Z3Problem(const constraints::ConstraintTrace& its_trace,
            const constraints::MustOrder& its_order,
            const Z3Options& its_options);

  void Add(const z3::expr& e);
  // Adds each condition of a path under the literal of its group.
  void AddConditions();
  // Returns the Boolean that stands for all conditions and demands of the
  // group.
  z3::expr GroupLiteral(constraints::GroupId group);

  // Returns whether the value that `read` has at the location matters.
  bool UsesValue(uint32_t read) const;
  // Returns the value, as bits of the location, that `read` returned; for
  // Locations::kAtEnd the one that `demand_index` asks for.
  z3::expr ValueRead(uint32_t location, uint32_t read, size_t demand_index);
  // Returns the value, in the same way, that `write`, or Locations::kInitial,
  // leaves there.
  z3::expr ValueWritten(uint32_t location, uint32_t write);

  // Asks Z3. The answer's order is the caller's to fill in.
  Z3Answer Check();

  const constraints::ConstraintTrace& trace;
  const constraints::MustOrder& order;
  const constraints::Locations locations;
  const Z3Options& options;
  z3::context context;
  z3::solver solver;
  uint64_t clauses = 0;

 private:
  // Returns the part of a value at `addr` that lies in the location.
  z3::expr Piece(const z3::expr& value, uint64_t addr, uint32_t location);
  z3::expr InitialByte(uint64_t addr);
  z3::expr InitialValue(uint32_t location);
  void TakeUnknowns(Z3Answer& answer);

  Z3Translator translator_;
  std::map<constraints::GroupId, z3::expr> groups_;
  // By address: the initial value that covers it, and the byte of it.
  std::map<uint64_t, std::pair<const constraints::Expr*, uint32_t>>
      initial_bytes_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_Z3_PROBLEM_H_
