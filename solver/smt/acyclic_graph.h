#ifndef CLEW_SOLVER_SMT_ACYCLIC_GRAPH_H_
#define CLEW_SOLVER_SMT_ACYCLIC_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace clew::solver {

// A directed graph that is kept free of cycles, with a topological order that
// is repaired locally at each edge, and with undo.
//
// Invariant: place_ is a topological order: every edge leads from a lower place
// to a higher one. An edge that does so already costs nothing. One that leads
// back is put in by reordering the nodes between its two ends:
//
//     places       0   1   2   3             edges a -> c and b -> d
//     before       a   b   c   d             add d -> a: search forward from a
//     up
//                                            to d's place, backward from d
//     forward {a, c}, backward {b, d}        no cycle, as a does not lead to d
//     after        b   d   a   c             backward first, each group in its
//                                            old order, on the same places
//
// Were there an edge c -> d, the search forward would come to d: a cycle, whose
// reasons are those of a -> c, c -> d and of the new edge.
//
// Source: D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm
// for directed acyclic graphs", Journal of Experimental Algorithmics 11 (2006).
class AcyclicGraph {
 public:
  static constexpr uint32_t kNoReason = ~uint32_t{0};
  using Reasons = std::array<uint32_t, 2>;  // why an edge is there

  // `order` lists all nodes; it must become a topological order of the edges
  // that are certain, which AddCertain adds.
  explicit AcyclicGraph(const std::vector<uint32_t>& order);

  // Adds an edge that is certain. REQUIRES: `before` comes first in the order
  // given.
  void AddCertain(uint32_t before, uint32_t after);

  // Adds an edge. Returns false if it would close a cycle; `conflict` then
  // holds the reasons of all edges of the cycle (duplicates possible), and
  // nothing has changed.
  bool Add(uint32_t before, uint32_t after, Reasons reasons,
           std::vector<uint32_t>& conflict);

  size_t edge_count() const { return trail_.size(); }
  // Removes the latest edges until `count` are left (of those by Add).
  void RemoveTo(size_t count);

  // Returns the node's place in an order that is consistent with every edge;
  // smaller is earlier.
  uint32_t PlaceOf(uint32_t node) const { return place_[node]; }

 private:
  struct Edge {
    uint32_t node;  // the other end
    Reasons reasons;
  };
  bool SearchForward(uint32_t from, uint32_t target,
                     std::vector<uint32_t>& conflict);
  void SearchBackward(uint32_t from, uint32_t place_min);
  void Reorder();
  static void Append(const Reasons& reasons, std::vector<uint32_t>& conflict);

  std::vector<std::vector<Edge>> out_;
  std::vector<std::vector<Edge>> in_;
  std::vector<uint32_t> place_;
  struct Added {
    uint32_t before;
    uint32_t after;
  };
  std::vector<Added> trail_;
  // Scratch of one search.
  std::vector<uint32_t> forward_;
  std::vector<uint32_t> backward_;
  std::vector<uint32_t> stamp_;
  std::vector<uint32_t> came_from_;
  std::vector<Reasons> came_by_;
  uint32_t now_ = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_ACYCLIC_GRAPH_H_
