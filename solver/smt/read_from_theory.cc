#include "solver/smt/read_from_theory.h"

#include <algorithm>

namespace clew::solver {

using constraints::Locations;
using constraints::MustOrder;

using Reasons = AcyclicGraph::Reasons;
constexpr uint32_t kNoReason = AcyclicGraph::kNoReason;

ReadFromTheory::ReadFromTheory(const constraints::ConstraintTrace& trace,
                               const MustOrder& order,
                               const Locations& locations,
                               const std::vector<uint32_t>& guess)
    : trace_(trace),
      order_(order),
      locations_(locations),
      graph_(guess),
      readers_(order.access_count()),
      later_(order.access_count()) {
  for (const auto& edge : order.edges()) {
    graph_.AddCertain(edge.before, edge.after);
  }
}

uint32_t ReadFromTheory::AddLiteral(const Literal& literal) {
  literals_.push_back(literal);
  return static_cast<uint32_t>(literals_.size() - 1);
}

bool ReadFromTheory::AddEdge(uint32_t before, uint32_t after, Reasons reasons,
                             std::vector<uint32_t>& conflict) {
  // The graph has a path for it, by edges that no Pop removes.
  if (order_.Before(before, after)) {
    return true;
  }
  if (graph_.Add(before, after, reasons, conflict)) {
    return true;
  }
  ++conflicts_;
  std::ranges::sort(conflict);
  const auto repeated = std::ranges::unique(conflict);
  conflict.erase(repeated.begin(), repeated.end());
  return false;
}

bool ReadFromTheory::WritesTo(uint32_t access, uint32_t location) const {
  const auto range = locations_.OfAccess(access);
  return location >= range.first && location < range.first + range.count &&
         Writes(trace_.At(order_.RefOf(access)).kind);
}

bool ReadFromTheory::KnownBefore(uint32_t first, uint32_t second,
                                 uint32_t& literal) const {
  literal = kNoReason;
  if (order_.Before(first, second)) {
    return true;
  }
  const auto& later = later_[first];
  const auto found = std::ranges::find(later, second, &Later::write);
  if (found == later.end()) {
    return false;
  }
  literal = found->literal;
  return true;
}

// "Does not return that write" says nothing of the order by itself; that a read
// returns some write is a clause of the formula. Of two writes one is always
// first, so both values of a kWriteOrder say something.
bool ReadFromTheory::Assign(uint32_t number, bool value,
                            std::vector<uint32_t>& conflict) {
  const Literal& literal = literals_[number];
  const bool holds = value != literal.inverted;
  if (literal.kind == Literal::Kind::kReadFrom) {
    return !holds || AssignReadFrom(literal, number, conflict);
  }
  return holds ? AssignWriteOrder(literal.a, literal.b, number, conflict)
               : AssignWriteOrder(literal.b, literal.a, number, conflict);
}

bool ReadFromTheory::AssignReadFrom(const Literal& literal, uint32_t number,
                                    std::vector<uint32_t>& conflict) {
  const bool is_initial = literal.b == Locations::kInitial;
  if (!is_initial &&
      !AddEdge(literal.b, literal.a, {number, kNoReason}, conflict)) {
    return false;
  }
  for (const auto& writes : locations_.all()[literal.location].writes) {
    if (!AddReaderEdges(literal, number, writes, conflict)) {
      return false;
    }
  }
  if (!is_initial) {
    readers_[literal.b].push_back({literal.a, literal.location, number});
    undo_.push_back({Undo::Kind::kReader, literal.b});
  }
  return true;
}

// The read is before every write that is known to come after its own.
bool ReadFromTheory::AddReaderEdges(const Literal& literal, uint32_t number,
                                    const std::vector<uint32_t>& writes,
                                    std::vector<uint32_t>& conflict) {
  for (uint32_t other : writes) {
    uint32_t known_by = kNoReason;
    if (other == literal.a || other == literal.b) {
      continue;
    }
    if (literal.b != Locations::kInitial &&
        !KnownBefore(literal.b, other, known_by)) {
      continue;
    }
    if (!AddEdge(literal.a, other, {number, known_by}, conflict)) {
      return false;
    }
    if (known_by == kNoReason) {
      break;  // program order puts the thread's further writes behind `other`
    }
  }
  return true;
}

bool ReadFromTheory::AssignWriteOrder(uint32_t first, uint32_t second,
                                      uint32_t number,
                                      std::vector<uint32_t>& conflict) {
  if (!AddEdge(first, second, {number, kNoReason}, conflict)) {
    return false;
  }
  // The other half of the invariant: those who return `first` and were assigned
  // before. A read-modify-write that returns `first` may be `second` itself.
  for (const Reader& reader : readers_[first]) {
    if (reader.read != second && WritesTo(second, reader.location) &&
        !AddEdge(reader.read, second, {reader.literal, number}, conflict)) {
      return false;
    }
  }
  later_[first].push_back({second, number});
  undo_.push_back({Undo::Kind::kLater, first});
  return true;
}

void ReadFromTheory::Push() {
  levels_.push_back({graph_.edge_count(), undo_.size()});
}

void ReadFromTheory::Pop(uint32_t levels) {
  const Level level = levels_[levels_.size() - levels];
  levels_.resize(levels_.size() - levels);
  graph_.RemoveTo(level.edges);
  while (undo_.size() > level.undo) {
    const Undo undo = undo_.back();
    undo_.pop_back();
    if (undo.kind == Undo::Kind::kReader) {
      readers_[undo.write].pop_back();
    } else {
      later_[undo.write].pop_back();
    }
  }
}

std::vector<uint32_t> ReadFromTheory::Order() const {
  std::vector<uint32_t> ids(order_.access_count());
  for (uint32_t id = 0; id < ids.size(); ++id) {
    ids[graph_.PlaceOf(id)] = id;
  }
  return ids;
}

}  // namespace clew::solver
