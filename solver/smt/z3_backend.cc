#include "solver/smt/z3_backend.h"

#include <z3++.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "common/check.h"
#include "common/deadline.h"
#include "constraints/guess_keys.h"
#include "solver/smt/read_from_theory.h"

// The only file that knows Z3 (4.8.12). What its behaviour forces on us:
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

using constraints::ConstraintTrace;
using constraints::Expr;
using constraints::ExprOp;
using constraints::GroupId;
using constraints::GuessedOrder;
using constraints::GuessKeys;
using constraints::Location;
using constraints::Locations;
using constraints::MustOrder;
using constraints::TraceAccess;
using constraints::Verdict;

Z3Answer Unknown(std::string why) {
  Z3Answer answer;
  answer.why = std::move(why);
  return answer;
}

z3::expr ToBit(const z3::expr& condition) {
  z3::context& c = condition.ctx();
  return z3::ite(condition, c.bv_val(1, 1), c.bv_val(0, 1));
}

// Our expressions as Z3's bit vectors, each node once.
class Translator {
 public:
  explicit Translator(z3::context& context) : context_(context) {}

  z3::expr Translate(const Expr* root) {
    if (const auto known = done_.find(root); known != done_.end()) {
      return known->second;
    }
    std::vector<const Expr*> stack = {root};
    while (!stack.empty()) {
      const Expr* e = stack.back();
      const size_t before = stack.size();
      for (const Expr* operand : e->operands) {
        if (operand != nullptr && !done_.contains(operand)) {
          stack.push_back(operand);
        }
      }
      if (stack.size() == before) {
        stack.pop_back();
        done_.try_emplace(e, Make(*e));
      }
    }
    return done_.at(root);
  }

  z3::expr Number(uint64_t value, uint32_t width) {
    return context_.bv_val(value, width);
  }

 private:
  z3::expr Operand(const Expr& e, size_t i) const {
    return done_.at(e.operands[i]);
  }

  z3::expr Make(const Expr& e) {
    switch (OperandCount(e.op)) {
      case 0:
        return MakeLeaf(e);
      case 1:
        return MakeUnary(e, Operand(e, 0));
      case 2:
        return MakeBinary(e, Operand(e, 0), Operand(e, 1));
      default:
        return z3::ite(Operand(e, 0) == Number(1, 1), Operand(e, 1),
                       Operand(e, 2));
    }
  }

  z3::expr MakeLeaf(const Expr& e) {
    return e.is_const() ? Number(e.value, e.width)
                        : context_.bv_const(fmt::format("v{}", e.value).c_str(),
                                            e.width);
  }

  static z3::expr MakeUnary(const Expr& e, const z3::expr& a) {
    const uint32_t more =
        e.width - std::min<uint32_t>(e.width, e.operands[0]->width);
    switch (e.op) {
      case ExprOp::kNot:
        return ~a;
      case ExprOp::kNeg:
        return -a;
      case ExprOp::kZext:
        return z3::zext(a, more);
      case ExprOp::kSext:
        return z3::sext(a, more);
      default:
        return a.extract(static_cast<unsigned>(e.value) + e.width - 1,
                         static_cast<unsigned>(e.value));
    }
  }

  static z3::expr MakeBinary(const Expr& e, const z3::expr& a,
                             const z3::expr& b) {
    switch (e.op) {
      case ExprOp::kAdd:
        return a + b;
      case ExprOp::kSub:
        return a - b;
      case ExprOp::kMul:
        return a * b;
      case ExprOp::kUdiv:
        return z3::udiv(a, b);
      case ExprOp::kUrem:
        return z3::urem(a, b);
      case ExprOp::kSdiv:
        return a / b;
      case ExprOp::kSrem:
        return z3::srem(a, b);
      case ExprOp::kAnd:
        return a & b;
      case ExprOp::kOr:
        return a | b;
      case ExprOp::kXor:
        return a ^ b;
      case ExprOp::kShl:
        return z3::shl(a, b);
      case ExprOp::kLshr:
        return z3::lshr(a, b);
      case ExprOp::kAshr:
        return z3::ashr(a, b);
      case ExprOp::kEq:
        return ToBit(a == b);
      case ExprOp::kUlt:
        return ToBit(z3::ult(a, b));
      case ExprOp::kSlt:
        return ToBit(z3::slt(a, b));
      default:
        return z3::concat(a, b);
    }
  }

  z3::context& context_;
  std::unordered_map<const Expr*, z3::expr> done_;
};

// What all encodings share: values, conditions, groups as assumptions.
class Problem {
 public:
  Problem(const ConstraintTrace& its_trace, const MustOrder& its_order,
          const Z3Options& its_options)
      : trace(its_trace),
        order(its_order),
        locations(its_trace, its_order),
        options(its_options),
        solver(context, z3::solver::simple()),
        translator(context) {
    z3::params params(context);
    params.set("timeout", static_cast<unsigned>(options.seconds * 1000));
    solver.set(params);
  }

  void Add(const z3::expr& e) {
    solver.add(e);
    ++clauses;
  }

  z3::expr GroupLiteral(GroupId group) {
    const auto found = groups_.find(group);
    if (found != groups_.end()) {
      return found->second;
    }
    const z3::expr literal =
        context.bool_const(fmt::format("g{}", group).c_str());
    groups_.emplace(group, literal);
    return literal;
  }

  void AddConditions() {
    for (const auto& path : trace.path) {
      if (!options.order_only) {
        Add(z3::implies(
            GroupLiteral(path.group),
            translator.Translate(path.condition) == translator.Number(1, 1)));
      }
    }
  }

  // Whether the value that `read` has at the location matters.
  bool UsesValue(uint32_t read) const {
    return !options.order_only &&
           (read == Locations::kAtEnd ||
            trace.At(order.RefOf(read)).read_value != nullptr);
  }

  z3::expr ValueRead(uint32_t location, uint32_t read, size_t demand_index) {
    if (read == Locations::kAtEnd) {
      const auto& demand = trace.final_memory[demand_index];
      return Piece(translator.Number(demand.value, demand.size_bytes * 8),
                   demand.addr.as_int(), location);
    }
    const TraceAccess& access = trace.At(order.RefOf(read));
    return Piece(translator.Translate(access.read_value), access.addr.as_int(),
                 location);
  }

  z3::expr ValueWritten(uint32_t location, uint32_t write) {
    if (write == Locations::kInitial) {
      return InitialValue(location);
    }
    const TraceAccess& access = trace.At(order.RefOf(write));
    return Piece(translator.Translate(access.written_value),
                 access.addr.as_int(), location);
  }

  Z3Answer Check() {
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

  const ConstraintTrace& trace;
  const MustOrder& order;
  const Locations locations;
  const Z3Options& options;
  z3::context context;
  z3::solver solver;
  Translator translator;
  uint64_t clauses = 0;

 private:
  // The part of a value at `addr` that lies in the location.
  z3::expr Piece(const z3::expr& value, uint64_t addr, uint32_t location) {
    const Location& at = locations.all()[location];
    const auto low = static_cast<unsigned>((at.addr - addr) * 8);
    const unsigned width = at.size_bytes * 8;
    return width == value.get_sort().bv_size()
               ? value
               : value.extract(low + width - 1, low);
  }

  z3::expr InitialByte(uint64_t addr) {
    if (initial_bytes_.empty()) {
      for (const auto& initial : trace.initial) {
        for (uint32_t i = 0; i < initial.size_bytes; ++i) {
          initial_bytes_[initial.addr.as_int() + i] = {initial.value, i};
        }
      }
    }
    const auto found = initial_bytes_.find(addr);
    if (found == initial_bytes_.end()) {
      return translator.Number(0, 8);
    }
    const auto& [value, byte] = found->second;
    return translator.Translate(value).extract(8 * byte + 7, 8 * byte);
  }

  z3::expr InitialValue(uint32_t location) {
    const Location& at = locations.all()[location];
    z3::expr value = InitialByte(at.addr);
    for (uint32_t i = 1; i < at.size_bytes; ++i) {
      value = z3::concat(InitialByte(at.addr + i), value);
    }
    return value.simplify();
  }

  void TakeUnknowns(Z3Answer& answer) {
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
        const z3::expr value = model.eval(translator.Translate(e), true);
        uint64_t number = 0;
        if (value.is_numeral_u64(number)) {
          answer.unknowns.emplace_back(e->var(), number);
        }
      }
    }
  }

  std::map<GroupId, z3::expr> groups_;
  std::map<uint64_t, std::pair<const Expr*, uint32_t>> initial_bytes_;
};

// One integer an access (clap, core, time).
class OrderEncoding final : public FormulaSink {
 public:
  OrderEncoding(Problem& problem, const Deadline& deadline)
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
      return Unknown("time limit while building the formula");
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

  Problem& problem_;
  const Deadline& deadline_;
  std::vector<z3::expr> places_;
  uint32_t location_ = 0;
  uint32_t read_ = 0;
  size_t demand_ = 0;
  z3::expr_vector matches_;
  z3::expr_vector conjunction_;
};

// Booleans with the order theory as a propagator.
class ReadFromEncoding {
 public:
  ReadFromEncoding(Problem& problem, const std::vector<uint32_t>& guess)
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

  Problem& problem_;
  ReadFromTheory theory_;
  std::vector<uint32_t> place_;  // of each access in the guess
  std::map<std::pair<uint32_t, uint32_t>, z3::expr> before_;
  std::unordered_map<unsigned, uint32_t> literal_of_id_;
  std::vector<unsigned> id_of_literal_;
  bool conflict_ = false;
};

Z3Answer SolveProblem(Problem& problem, const Deadline& deadline) {
  if (problem.options.encoding != EncodingKind::kReadFrom) {
    return OrderEncoding(problem, deadline).Solve();
  }
  const auto guess = GuessedOrder(problem.order, GuessKeys(problem.trace));
  return ReadFromEncoding(problem, guess).Solve();
}

}  // namespace

Z3Answer SolveWithZ3InProcess(const ConstraintTrace& trace,
                              const Z3Options& options) {
  const Deadline deadline(options.seconds);
  const auto order = MustOrder::Compute(trace, options.sources);
  if (!order) {
    Z3Answer answer;
    answer.verdict = Verdict::kUnsat;
    return answer;
  }
  z3::set_param("smt.relevancy",
                options.encoding == EncodingKind::kReadFrom ? 0 : 2);
  z3::set_param("smt.phase_selection",
                options.encoding == EncodingKind::kReadFrom ? 0 : 3);
  try {
    Problem problem(trace, *order, options);
    Z3Answer answer = SolveProblem(problem, deadline);
    answer.seconds = options.seconds - deadline.seconds_left();
    return answer;
  } catch (const z3::exception& error) {
    return Unknown(fmt::format("z3: {}", error.msg()));
  }
}

ConstraintTrace WhatEncodingUses(const ConstraintTrace& trace,
                                 const Z3Options& options) {
  ConstraintTrace used = trace;
  for (auto& thread : used.threads) {
    for (TraceAccess& access : thread.accesses) {
      if (!options.sources.use_time) {
        access.time = TraceAccess{}.time;
      }
      if (!options.sources.use_core) {
        access.slice = constraints::kNoSlice;
      }
    }
  }
  if (options.order_only) {
    used.path.clear();
    used.final_memory.clear();
  }
  return used;
}

}  // namespace clew::solver
