#ifndef CLEW_CONSTRAINTS_MUST_ORDER_H_
#define CLEW_CONSTRAINTS_MUST_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "constraints/trace.h"

namespace clew::constraints {

// Which evidence may order accesses before any search.
struct OrderSources {
  bool use_core = true;  // slices of one core do not overlap
  bool use_time = true;  // time intervals
};

// What is certain about the order of accesses: the transitive closure of
// program order, order facts, core order and time, as one vector clock per
// access: 4 bytes times threads times accesses.
class MustOrder {
 public:
  // Computes the order. Returns nullopt if the certain orders contradict each
  // other (a cycle, or a time interval that program order leaves empty).
  // REQUIRES: the trace is valid.
  static std::optional<MustOrder> Compute(const ConstraintTrace& trace,
                                          OrderSources sources);

  // An access has a number, its id, counted thread by thread in program order.
  uint32_t access_count() const { return static_cast<uint32_t>(refs_.size()); }
  uint32_t IdOf(AccessRef ref) const {
    return first_id_[ref.thread] + ref.index;
  }
  AccessRef RefOf(uint32_t id) const { return refs_[id]; }

  // Returns whether a is certainly before b; false for a == b.
  bool Before(uint32_t a, uint32_t b) const {
    return CountBefore(b, refs_[a].thread) > refs_[a].index;
  }
  // Returns how many accesses of `thread` are certainly before `id`; for its
  // own thread, its index.
  uint32_t CountBefore(uint32_t id, uint32_t thread) const {
    return clock_[size_t{id} * thread_count_ + thread];
  }
  uint32_t thread_count() const { return thread_count_; }
  struct Edge {
    uint32_t before;
    uint32_t after;
  };
  // Returns pairs whose transitive closure is the whole order. Leaves out those
  // by time that an earlier access of the same thread implies.
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  explicit MustOrder(const ConstraintTrace& trace);
  void CollectEdges(const ConstraintTrace& trace, OrderSources sources);
  void AddTimeEdges(const ConstraintTrace& trace);
  void AddCoreEdges(const ConstraintTrace& trace);
  bool Close();
  void Inherit(uint32_t from, uint32_t to);

  uint32_t thread_count_;
  std::vector<uint32_t> first_id_;
  std::vector<AccessRef> refs_;
  std::vector<uint32_t> clock_;
  std::vector<Edge> edges_;
};

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_MUST_ORDER_H_
