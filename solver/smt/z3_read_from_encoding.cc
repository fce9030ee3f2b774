#include <fmt/format.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "constraints/locations.h"
#include "constraints/must_order.h"
#include "solver/smt/read_from_theory.h"
#include "solver/smt/z3_encodings.h"

// What the behaviour of Z3 4.8.12 forces on us:
// - user_propagator_base of z3++.h never calls propagate_init, so push and pop
//   are not seen: the C functions are used directly.
// - Registering with a propagator before the first assertion of a theory
//   freezes the set-up and gives wrong models: a dummy assertion comes first,
//   and no answer counts until the checker has run it.
// - Registered literals are decided only if relevant: smt.relevancy=0.
// - There is no initial phase: each Boolean says "deviates from the guess" and
//   the phase is always false.

namespace clew::solver {
namespace {

using constraints::Location;
using constraints::Locations;
using constraints::MustOrder;

// Booleans with the order theory as a propagator.
class ReadFromEncoding {
 public:
  ReadFromEncoding(Z3Problem& problem, const std::vector<uint32_t>& guess)
      : problem_(problem),
        theory_(problem.trace, problem.order, problem.locations, guess),
        place_(guess.size()) {
    for (uint32_t i = 0; i < guess.size(); ++i) {
      place_[guess[i]] = i;
    }
  }

  Z3Answer Solve() {
    AddDummies();
    problem_.AddConditions();
    z3::context& c = problem_.context;
    Z3_solver_propagate_init(c, problem_.solver, this, &OnPush, &OnPop,
                             &OnFresh);
    Z3_solver_propagate_fixed(c, problem_.solver, &OnFixed);
    AddWriteOrders();
    for (uint32_t l = 0; l < problem_.locations.all().size(); ++l) {
      for (uint32_t read : problem_.locations.all()[l].reads) {
        AddRead(l, read);
      }
    }
    AddFinalMemory();
    Z3Answer answer = problem_.Check();
    answer.cycles = theory_.conflicts();
    for (uint32_t id : theory_.Order()) {
      answer.order.push_back(problem_.order.RefOf(id).thread);
    }
    return answer;
  }

 private:
  static void OnPush(void* self) { Self(self)->theory_.Push(); }
  static void OnPop(void* self, unsigned levels) {
    Self(self)->conflict_ = false;
    Self(self)->theory_.Pop(levels);
  }
  static void* OnFresh(void* self, Z3_context) { return self; }
  static void OnFixed(void* self, Z3_solver_callback callback, unsigned id,
                      Z3_ast value) {
    Self(self)->Fixed(callback, id, value);
  }
  static ReadFromEncoding* Self(void* self) {
    return static_cast<ReadFromEncoding*>(self);
  }

  void Fixed(Z3_solver_callback callback, unsigned id, Z3_ast value) {
    z3::context& c = problem_.context;
    const auto literal = literal_of_id_.find(id);
    if (conflict_ || literal == literal_of_id_.end()) {
      return;
    }
    std::vector<uint32_t> reasons;
    const bool holds = Z3_get_bool_value(c, value) == Z3_L_TRUE;
    if (theory_.Assign(literal->second, holds, reasons)) {
      return;
    }
    conflict_ = true;  // until pop
    std::vector<unsigned> ids;
    ids.reserve(reasons.size());
    for (uint32_t reason : reasons) {
      ids.push_back(id_of_literal_[reason]);
    }
    Z3_solver_propagate_consequence(
        c, callback, static_cast<unsigned>(ids.size()), ids.data(), 0, nullptr,
        nullptr, c.bool_val(false));
  }

  // One assertion of each theory in use, before the propagator exists.
  void AddDummies() {
    const z3::expr dummy = problem_.context.bv_const("dummy", 8);
    problem_.solver.add(z3::ult(dummy + 3, problem_.context.bv_val(7, 8)));
  }

  // The Boolean is false where the statement agrees with the guess.
  z3::expr Register(ReadFromTheory::Literal literal, const std::string& name) {
    const z3::expr variable = problem_.context.bool_const(name.c_str());
    const uint32_t number = theory_.AddLiteral(literal);
    const unsigned id = Z3_solver_propagate_register(problem_.context,
                                                     problem_.solver, variable);
    literal_of_id_.emplace(id, number);
    id_of_literal_.push_back(id);
    return literal.inverted ? !variable : variable;
  }

  void AddWriteOrder(uint32_t a, uint32_t b) {
    const MustOrder& order = problem_.order;
    if (order.Before(a, b) || order.Before(b, a) || before_.contains({a, b})) {
      return;
    }
    ReadFromTheory::Literal literal = {
        ReadFromTheory::Literal::Kind::kWriteOrder, a, b, 0, false};
    literal.inverted = place_[a] < place_[b];
    before_.emplace(std::pair(a, b),
                    Register(literal, fmt::format("w{}_{}", a, b)));
  }

  void AddWriteOrders() {
    for (const Location& location : problem_.locations.all()) {
      for (size_t t = 0; t < location.writes.size(); ++t) {
        for (size_t u = t + 1; u < location.writes.size(); ++u) {
          for (uint32_t a : location.writes[t]) {
            for (uint32_t b : location.writes[u]) {
              AddWriteOrder(a, b);
            }
          }
        }
      }
    }
  }

  // REQUIRES: a and b write one location.
  z3::expr Before(uint32_t a, uint32_t b) {
    if (problem_.order.Before(a, b) || problem_.order.Before(b, a)) {
      return problem_.context.bool_val(problem_.order.Before(a, b));
    }
    const auto found = before_.find({a, b});
    return found != before_.end() ? found->second : !before_.at({b, a});
  }

  // What the read returns in the guess.
  uint32_t GuessedWrite(const std::vector<uint32_t>& candidates,
                        uint32_t read) const {
    uint32_t best = Locations::kInitial;
    for (uint32_t write : candidates) {
      if (write != Locations::kInitial && place_[write] < place_[read] &&
          (best == Locations::kInitial || place_[write] > place_[best])) {
        best = write;
      }
    }
    return best;
  }

  void AddRead(uint32_t location, uint32_t read) {
    const auto candidates = problem_.locations.Candidates(location, read);
    const uint32_t guessed = GuessedWrite(candidates, read);
    z3::expr_vector some(problem_.context);
    for (uint32_t write : candidates) {
      const z3::expr chosen =
          Register({ReadFromTheory::Literal::Kind::kReadFrom, read, write,
                    location, write == guessed},
                   fmt::format("r{}_{}_{}", read, write, location));
      some.push_back(chosen);
      if (problem_.UsesValue(read)) {
        problem_.Add(
            z3::implies(chosen, problem_.ValueRead(location, read, 0) ==
                                    problem_.ValueWritten(location, write)));
      }
    }
    problem_.Add(z3::mk_or(some));
    AddAtMostOne(some);
  }

  // Two writes cannot both be the one returned (the theory finds that out
  // too, later); left away where it would be quadratic in something large.
  void AddAtMostOne(const z3::expr_vector& some) {
    constexpr unsigned kPairsMax = 40;
    for (unsigned i = 0; some.size() <= kPairsMax && i < some.size(); ++i) {
      for (unsigned k = i + 1; k < some.size(); ++k) {
        problem_.Add(!some[static_cast<int>(i)] || !some[static_cast<int>(k)]);
      }
    }
  }

  void AddFinalMemory() {
    const auto& demands = problem_.trace.final_memory;
    for (size_t d = 0; !problem_.options.order_only && d < demands.size();
         ++d) {
      const auto range = problem_.locations.OfDemand(d);
      for (uint32_t l = range.first; l < range.first + range.count; ++l) {
        AddFinalLocation(l, d);
      }
    }
  }

  void AddFinalLocation(uint32_t location, size_t demand) {
    const auto candidates =
        problem_.locations.Candidates(location, Locations::kAtEnd);
    z3::expr_vector some(problem_.context);
    for (uint32_t write : candidates) {
      z3::expr_vector all(problem_.context);
      all.push_back(problem_.ValueRead(location, Locations::kAtEnd, demand) ==
                    problem_.ValueWritten(location, write));
      for (uint32_t other : candidates) {
        if (other != write && write != Locations::kInitial) {
          all.push_back(Before(other, write));
        }
      }
      some.push_back(z3::mk_and(all));
    }
    problem_.Add(z3::implies(
        problem_.GroupLiteral(problem_.trace.final_memory[demand].group),
        z3::mk_or(some)));
  }

  Z3Problem& problem_;
  ReadFromTheory theory_;
  std::vector<uint32_t> place_;  // of each access in the guess
  std::map<std::pair<uint32_t, uint32_t>, z3::expr> before_;
  std::unordered_map<unsigned, uint32_t> literal_of_id_;
  std::vector<unsigned> id_of_literal_;
  bool conflict_ = false;
};

}  // namespace

Z3Answer SolveByReadFrom(Z3Problem& problem,
                         const std::vector<uint32_t>& guess) {
  return ReadFromEncoding(problem, guess).Solve();
}

}  // namespace clew::solver
