#ifndef CLEW_CONSTRAINTS_LOCATIONS_H_
#define CLEW_CONSTRAINTS_LOCATIONS_H_

#include <cstdint>
#include <vector>

#include "constraints/must_order.h"
#include "constraints/trace.h"

namespace clew::constraints {

// A piece of memory that accesses share: a whole word where all accesses that
// overlap it have its address and size, else a single byte.
struct Location {
  uint64_t addr = 0;
  uint32_t size_bytes = 0;
  std::vector<uint32_t> reads;                // access ids, thread by thread
  std::vector<std::vector<uint32_t>> writes;  // by thread, program order
};

// Splits memory into locations, for encodings with one read-from per location.
class Locations {
 public:
  // Both are borrowed. REQUIRES: the trace is valid.
  Locations(const ConstraintTrace& trace, const MustOrder& order);

  const std::vector<Location>& all() const { return locations_; }
  // Locations of an access or of a final demand: consecutive, ascending.
  struct Range {
    uint32_t first;
    uint32_t count;
  };
  Range OfAccess(uint32_t id) const { return of_access_[id]; }
  Range OfDemand(size_t index) const { return of_demand_[index]; }

  // Candidates returns the writes that a read of the location may return, as
  // far as the certain order tells; kInitial for the initial value. `read` may
  // be kAtEnd: what memory holds when all is done.
  static constexpr uint32_t kInitial = ~uint32_t{0};
  static constexpr uint32_t kAtEnd = ~uint32_t{0} - 1;
  std::vector<uint32_t> Candidates(uint32_t location, uint32_t read) const;

 private:
  bool MayBeRead(uint32_t write, uint32_t read,
                 const std::vector<uint32_t>& last_before) const;
  // Returns, for each thread that has one, its last write certainly before the
  // read.
  std::vector<uint32_t> LastCertain(const Location& location,
                                    uint32_t read) const;

  const MustOrder& order_;
  std::vector<Location> locations_;
  std::vector<Range> of_access_;
  std::vector<Range> of_demand_;
};

// Bits of choice and of evidence: see MeasureAmbiguity.
struct Ambiguity {
  uint64_t reads = 0;
  uint64_t contested_reads = 0;  // more than one candidate
  double ambiguity_bits = 0;     // sum of log2 of the candidates
  double evidence_bits = 0;      // an estimate
  double per_read_ambiguity() const {
    return reads == 0 ? 0 : ambiguity_bits / static_cast<double>(reads);
  }
  double per_read_evidence() const {
    return reads == 0 ? 0 : evidence_bits / static_cast<double>(reads);
  }
};

// Measures ambiguity A, an upper bound: the bits it takes to say for each read
// which write it returns, given only the certain order; and evidence E: for
// each condition the bits it fixes: the width of what an equality with a
// constant compares, 1 for any other; final memory counts with its bits.
Ambiguity MeasureAmbiguity(const ConstraintTrace& trace, OrderSources sources);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_LOCATIONS_H_
