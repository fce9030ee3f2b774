#include "solver/smt/acyclic_graph.h"

#include <algorithm>

#include "common/check.h"

namespace clew::solver {

AcyclicGraph::AcyclicGraph(const std::vector<uint32_t>& order)
    : out_(order.size()),
      in_(order.size()),
      place_(order.size(), 0),
      stamp_(order.size(), 0),
      came_from_(order.size(), 0),
      came_by_(order.size(), Reasons{kNoReason, kNoReason}) {
  for (uint32_t i = 0; i < order.size(); ++i) {
    place_[order[i]] = i;
  }
}

void AcyclicGraph::AddCertain(uint32_t before, uint32_t after) {
  CLEW_CHECK(place_[before] < place_[after], "{} is not before {}", before,
             after);
  out_[before].push_back({after, {kNoReason, kNoReason}});
  in_[after].push_back({before, {kNoReason, kNoReason}});
}

void AcyclicGraph::Append(const Reasons& reasons,
                          std::vector<uint32_t>& conflict) {
  for (uint32_t reason : reasons) {
    if (reason != kNoReason) {
      conflict.push_back(reason);
    }
  }
}

// Visits what is reachable from `from` and placed before `target`; false if
// `target` is reachable. What is placed behind `target` cannot lead to it, by
// the invariant, and keeps its place.
bool AcyclicGraph::SearchForward(uint32_t from, uint32_t target,
                                 std::vector<uint32_t>& conflict) {
  ++now_;
  forward_.assign(1, from);
  stamp_[from] = now_;
  for (size_t i = 0; i < forward_.size(); ++i) {
    const uint32_t node = forward_[i];
    for (const Edge& edge : out_[node]) {
      if (edge.node == target) {
        Append(edge.reasons, conflict);
        for (uint32_t n = node; n != from; n = came_from_[n]) {
          Append(came_by_[n], conflict);
        }
        return false;
      }
      if (place_[edge.node] < place_[target] && stamp_[edge.node] != now_) {
        stamp_[edge.node] = now_;
        came_from_[edge.node] = node;
        came_by_[edge.node] = edge.reasons;
        forward_.push_back(edge.node);
      }
    }
  }
  return true;
}

// Visits what leads to `from` and is placed behind `place_min`.
void AcyclicGraph::SearchBackward(uint32_t from, uint32_t place_min) {
  ++now_;
  backward_.assign(1, from);
  stamp_[from] = now_;
  for (size_t i = 0; i < backward_.size(); ++i) {
    for (const Edge& edge : in_[backward_[i]]) {
      if (place_[edge.node] > place_min && stamp_[edge.node] != now_) {
        stamp_[edge.node] = now_;
        backward_.push_back(edge.node);
      }
    }
  }
}

// What leads to the edge takes the lower ones of the places in play.
void AcyclicGraph::Reorder() {
  const auto by_place = [&](uint32_t a, uint32_t b) {
    return place_[a] < place_[b];
  };
  std::ranges::sort(forward_, by_place);
  std::ranges::sort(backward_, by_place);
  std::vector<uint32_t> nodes = backward_;
  nodes.insert(nodes.end(), forward_.begin(), forward_.end());
  std::vector<uint32_t> places;
  places.reserve(nodes.size());
  for (uint32_t node : nodes) {
    places.push_back(place_[node]);
  }
  std::ranges::sort(places);
  for (size_t i = 0; i < nodes.size(); ++i) {
    place_[nodes[i]] = places[i];
  }
}

bool AcyclicGraph::Add(uint32_t before, uint32_t after, Reasons reasons,
                       std::vector<uint32_t>& conflict) {
  if (before == after) {
    Append(reasons, conflict);
    return false;
  }
  if (place_[before] > place_[after]) {
    if (!SearchForward(after, before, conflict)) {
      Append(reasons, conflict);
      return false;
    }
    SearchBackward(before, place_[after]);
    Reorder();
  }
  out_[before].push_back({after, reasons});
  in_[after].push_back({before, reasons});
  trail_.push_back({before, after});
  return true;
}

// An order of more edges is one of fewer: no place needs to be put back. Edges
// go in the reverse of the order in which they came, so each is the last of its
// nodes' lists.
void AcyclicGraph::RemoveTo(size_t count) {
  while (trail_.size() > count) {
    out_[trail_.back().before].pop_back();
    in_[trail_.back().after].pop_back();
    trail_.pop_back();
  }
}

}  // namespace clew::solver
