#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "constraints/locations.h"
#include "constraints/verdict.h"
#include "solver/smt/order_formula.h"
#include "solver/smt/z3_encodings.h"

namespace clew::solver {
namespace {

using constraints::GroupId;
using constraints::Locations;
using constraints::Verdict;

// One integer an access (clap, core, time).
class IntegerEncoding final : public FormulaSink {
 public:
  IntegerEncoding(Z3Problem& problem, const Deadline& deadline)
      : problem_(problem),
        deadline_(deadline),
        matches_(problem.context),
        conjunction_(problem.context) {
    for (uint32_t id = 0; id < problem.order.access_count(); ++id) {
      places_.push_back(
          problem.context.int_const(fmt::format("O{}", id).c_str()));
    }
  }

  Z3Answer Solve() {
    for (const auto& edge : problem_.order.edges()) {
      problem_.Add(places_[edge.before] < places_[edge.after]);
    }
    problem_.AddConditions();
    GenerateReadWrite(problem_.trace, problem_.order, problem_.locations,
                      problem_.options.encoding, *this);
    if (deadline_.passed()) {
      Z3Answer answer;
      answer.why = "time limit while building the formula";
      return answer;
    }
    Z3Answer answer = problem_.Check();
    if (answer.verdict == Verdict::kWitness) {
      TakeOrder(answer);
    }
    return answer;
  }

  void BeginRead(uint32_t location, uint32_t read, size_t demand) override {
    location_ = location;
    read_ = read;
    demand_ = demand;
    matches_.resize(0);
  }

  void BeginMatch(uint32_t write) override {
    conjunction_.resize(0);
    if (problem_.UsesValue(read_)) {
      conjunction_.push_back(problem_.ValueRead(location_, read_, demand_) ==
                             problem_.ValueWritten(location_, write));
    }
  }

  void Unit(std::span<const Alternative> alternatives) override {
    z3::expr_vector any(problem_.context);
    for (const Alternative& alternative : alternatives) {
      z3::expr_vector all(problem_.context);
      for (uint32_t i = 0; i < alternative.count; ++i) {
        const OrderAtom& atom = alternative.atoms[i];
        all.push_back(places_[atom.before] < places_[atom.after]);
      }
      any.push_back(z3::mk_and(all));
    }
    ++problem_.clauses;
    conjunction_.push_back(z3::mk_or(any));
  }

  void EndMatch() override { matches_.push_back(z3::mk_and(conjunction_)); }

  void EndRead() override {
    const z3::expr some = z3::mk_or(matches_);
    if (read_ == Locations::kAtEnd && !problem_.options.order_only) {
      const GroupId group = problem_.trace.final_memory[demand_].group;
      problem_.Add(z3::implies(problem_.GroupLiteral(group), some));
    } else {
      problem_.Add(some);
    }
  }

  bool stop() const override { return deadline_.passed(); }

 private:
  void TakeOrder(Z3Answer& answer) {
    const z3::model model = problem_.solver.get_model();
    std::vector<std::pair<int64_t, uint32_t>> placed;
    placed.reserve(places_.size());
    for (uint32_t id = 0; id < places_.size(); ++id) {
      placed.emplace_back(model.eval(places_[id], true).get_numeral_int64(),
                          id);
    }
    std::ranges::sort(placed);
    for (const auto& [place, id] : placed) {
      answer.order.push_back(problem_.order.RefOf(id).thread);
    }
  }

  Z3Problem& problem_;
  const Deadline& deadline_;
  std::vector<z3::expr> places_;
  uint32_t location_ = 0;
  uint32_t read_ = 0;
  size_t demand_ = 0;
  z3::expr_vector matches_;
  z3::expr_vector conjunction_;
};

}  // namespace

Z3Answer SolveByIntegers(Z3Problem& problem, const Deadline& deadline) {
  return IntegerEncoding(problem, deadline).Solve();
}

}  // namespace clew::solver
