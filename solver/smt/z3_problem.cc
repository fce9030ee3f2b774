#include "solver/smt/z3_problem.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "constraints/expr_eval.h"
#include "constraints/verdict.h"

namespace clew::solver {

using constraints::ConstraintTrace;
using constraints::Expr;
using constraints::ExprOp;
using constraints::GroupId;
using constraints::Location;
using constraints::Locations;
using constraints::MustOrder;
using constraints::TraceAccess;
using constraints::Verdict;

// The simple solver is Z3's one search without the tactics that would rewrite
// what the order theory has registered.
Z3Problem::Z3Problem(const ConstraintTrace& its_trace,
                     const MustOrder& its_order, const Z3Options& its_options)
    : trace(its_trace),
      order(its_order),
      locations(its_trace, its_order),
      options(its_options),
      solver(context, z3::solver::simple()),
      translator_(context) {
  z3::params params(context);
  params.set("timeout", static_cast<unsigned>(options.seconds * 1000));
  solver.set(params);
}

void Z3Problem::Add(const z3::expr& e) {
  solver.add(e);
  ++clauses;
}

z3::expr Z3Problem::GroupLiteral(GroupId group) {
  const auto found = groups_.find(group);
  if (found != groups_.end()) {
    return found->second;
  }
  const z3::expr literal =
      context.bool_const(fmt::format("g{}", group).c_str());
  groups_.emplace(group, literal);
  return literal;
}

void Z3Problem::AddConditions() {
  for (const auto& path : trace.path) {
    if (!options.order_only) {
      Add(z3::implies(
          GroupLiteral(path.group),
          translator_.Translate(path.condition) == translator_.Number(1, 1)));
    }
  }
}

// A read whose value nothing depends on is left to the order alone: bits that
// no condition mentions would only be decided and undone.
bool Z3Problem::UsesValue(uint32_t read) const {
  return !options.order_only &&
         (read == Locations::kAtEnd ||
          trace.At(order.RefOf(read)).read_value != nullptr);
}

z3::expr Z3Problem::ValueRead(uint32_t location, uint32_t read,
                              size_t demand_index) {
  if (read == Locations::kAtEnd) {
    const auto& demand = trace.final_memory[demand_index];
    return Piece(translator_.Number(demand.value, demand.size_bytes * 8),
                 demand.addr.as_int(), location);
  }
  const TraceAccess& access = trace.At(order.RefOf(read));
  return Piece(translator_.Translate(access.read_value), access.addr.as_int(),
               location);
}

z3::expr Z3Problem::ValueWritten(uint32_t location, uint32_t write) {
  if (write == Locations::kInitial) {
    return InitialValue(location);
  }
  const TraceAccess& access = trace.At(order.RefOf(write));
  return Piece(translator_.Translate(access.written_value),
               access.addr.as_int(), location);
}

// The groups are assumed, not asserted: of those that Z3 then names as its core
// each was needed for the contradiction that it found, though not each for
// every one.
Z3Answer Z3Problem::Check() {
  z3::expr_vector assumptions(context);
  std::map<std::string, GroupId> names;
  for (const auto& [group, literal] : groups_) {
    assumptions.push_back(literal);
    names.emplace(literal.decl().name().str(), group);
  }
  Z3Answer answer;
  answer.clauses = clauses;
  const z3::check_result result = solver.check(assumptions);
  if (result == z3::unsat) {
    answer.verdict = Verdict::kUnsat;
    const z3::expr_vector core = solver.unsat_core();
    for (unsigned i = 0; i < core.size(); ++i) {
      answer.conflicting.push_back(
          names.at(core[static_cast<int>(i)].decl().name().str()));
    }
  } else if (result == z3::sat) {
    answer.verdict = Verdict::kWitness;
    TakeUnknowns(answer);
  } else {
    answer.why = "z3: " + solver.reason_unknown();
  }
  return answer;
}

// A location is the largest range that all accesses to it cover whole, so an
// access that is wider is cut into pieces, little-endian:
//
//     access  0x100: b3 b2 b1 b0        location 0x102, 2 bytes: b3 b2,
//                                       bits 16 to 31 of the value
z3::expr Z3Problem::Piece(const z3::expr& value, uint64_t addr,
                          uint32_t location) {
  const Location& at = locations.all()[location];
  const auto low = static_cast<unsigned>((at.addr - addr) * 8);
  const unsigned width = at.size_bytes * 8;
  return width == value.get_sort().bv_size()
             ? value
             : value.extract(low + width - 1, low);
}

// Initial values are listed in ranges that no access has to respect: they are
// put together byte by byte. What is not listed starts as 0.
z3::expr Z3Problem::InitialByte(uint64_t addr) {
  if (initial_bytes_.empty()) {
    for (const auto& initial : trace.initial) {
      for (uint32_t i = 0; i < initial.size_bytes; ++i) {
        initial_bytes_[initial.addr.as_int() + i] = {initial.value, i};
      }
    }
  }
  const auto found = initial_bytes_.find(addr);
  if (found == initial_bytes_.end()) {
    return translator_.Number(0, 8);
  }
  const auto& [value, byte] = found->second;
  return translator_.Translate(value).extract(8 * byte + 7, 8 * byte);
}

z3::expr Z3Problem::InitialValue(uint32_t location) {
  const Location& at = locations.all()[location];
  z3::expr value = InitialByte(at.addr);
  for (uint32_t i = 1; i < at.size_bytes; ++i) {
    value = z3::concat(InitialByte(at.addr + i), value);
  }
  return value.simplify();
}

// Of every variable that occurs. The checker sets those of reads anew, from the
// order; it needs those that are read nowhere.
void Z3Problem::TakeUnknowns(Z3Answer& answer) {
  const z3::model model = solver.get_model();
  std::vector<const Expr*> roots;
  roots.reserve(trace.initial.size() + trace.path.size());
  for (const auto& initial : trace.initial) {
    roots.push_back(initial.value);
  }
  for (const auto& path : trace.path) {
    roots.push_back(path.condition);
  }
  for (uint32_t id = 0; id < order.access_count(); ++id) {
    if (const Expr* e = trace.At(order.RefOf(id)).written_value) {
      roots.push_back(e);
    }
  }
  for (const Expr* e : constraints::ReachableNodes(roots)) {
    if (e->op == ExprOp::kVar) {
      const z3::expr value = model.eval(translator_.Translate(e), true);
      uint64_t number = 0;
      if (value.is_numeral_u64(number)) {
        answer.unknowns.emplace_back(e->var(), number);
      }
    }
  }
}

}  // namespace clew::solver
