#ifndef CLEW_SOLVER_SMT_ORDER_FORMULA_H_
#define CLEW_SOLVER_SMT_ORDER_FORMULA_H_

#include <array>
#include <cstdint>
#include <span>

#include "constraints/locations.h"
#include "constraints/must_order.h"
#include "constraints/trace.h"

// The formulas of CLAP and H3 over one order variable an access, generated as a
// stream, so that they can be counted without being built.
//
// Each access has a number O, and they are to be ordered by it. A read R
// returns the write W if W is before R and every other write of the location is
// before W or after R. CLAP says so write by write: two alternatives for each.
// H3 uses that the writes of one core are ordered already, in a *chain*: those
// before W are a beginning of it, and those after R are the rest. So the chain
// is *cut* at one place, and a cut takes two comparisons, however long the
// chain:
//
//     chain   c1 < c2 < c3            W somewhere else, R returns W
//     cuts   ^    ^    ^    ^
//            R<c1                               | none before W
//                 c1<W and R<c2                 | c1 before W
//                      c2<W and R<c3            | c1, c2 before W
//                           c3<W                | all before W
//
// What is certain (MustOrder) is left out: an impossible cut is not an
// alternative, and where one cut is certain the whole unit is.

namespace clew::solver {

enum class EncodingKind : uint8_t {
  kClap,      // for each match, every other write: before it or after the read
  kCore,      // for each match and core (or thread), the place in its chain
  kTime,      // kCore; the order by time is certain, too
  kReadFrom,  // Booleans and an acyclicity theory: not an order formula
};
const char* ToString(EncodingKind encoding);
constraints::OrderSources SourcesOf(EncodingKind encoding);

struct OrderAtom {  // O_before < O_after, neither certain nor impossible
  uint32_t before;
  uint32_t after;
};

// A conjunction of at most two atoms.
struct Alternative {
  std::array<OrderAtom, 2> atoms;
  uint32_t count = 0;
};

// Takes the formula: for each read (and each final demand) and each of its
// locations a disjunction of matches; a match is a conjunction of its value and
// of units; a unit is a disjunction of alternatives.
class FormulaSink {
 public:
  virtual ~FormulaSink() = default;
  virtual void BeginRead(uint32_t location, uint32_t read,
                         size_t demand_index) = 0;
  virtual void BeginMatch(
      uint32_t write) = 0;  // or constraints::Locations::kInitial
  virtual void Unit(std::span<const Alternative> alternatives) = 0;
  virtual void EndMatch() = 0;
  virtual void EndRead() = 0;
  // Asked after each read; true ends the generation.
  virtual bool stop() const { return false; }
};

// Streams the read-write constraints of all reads and final demands. A unit
// without alternatives is false; units that are certain are left out.
void GenerateReadWrite(const constraints::ConstraintTrace& trace,
                       const constraints::MustOrder& order,
                       const constraints::Locations& locations,
                       EncodingKind encoding, FormulaSink& sink);

struct FormulaCounts {
  uint64_t variables = 0;    // order variables, or Booleans for kReadFrom
  uint64_t constraints = 0;  // all
  uint64_t read_write = 0;   // of these, about what reads return
};

// Counts without building. Takes time in proportion to the result.
FormulaCounts CountFormula(const constraints::ConstraintTrace& trace,
                           EncodingKind encoding);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_ORDER_FORMULA_H_
