#ifndef CLEW_CONSTRAINTS_TRACE_H_
#define CLEW_CONSTRAINTS_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/access.h"
#include "common/result.h"
#include "common/units.h"
#include "constraints/expr.h"

// Everything a formula about an interleaving needs, as plain values. It says:
// these accesses, in this order within each thread, under sequential
// consistency; find an order of all of them such that all evidence holds.
//
// Addresses are concrete. Where an address was computed from what a read
// returned, a path condition says that it came out as it did; "unsat" is then
// relative to these addresses.

namespace clew::constraints {

inline constexpr uint32_t kAccessBytesMax = 8;

// Which evidence a constraint stands for; index into ConstraintTrace::groups.
// An unsat answer names groups.
using GroupId = StrongInt<struct GroupIdTag, uint32_t>;

enum class EvidenceKind : uint8_t {
  kPath,     // a recorded branch, jump target or address
  kSyscall,  // arguments, results or output of a system call
  kFailure,  // how the run failed
  kMemory,   // memory at the end, from the core dump
  kSync,     // thread creation, exit and join, futex wake before return
  kTime,     // timing packets
  kCore,     // order of slices on a core
};
const char* ToString(EvidenceKind kind);

struct EvidenceGroup {
  EvidenceKind kind = EvidenceKind::kPath;
  std::string label;  // for people: "branches of thread 17"
};

inline constexpr uint32_t kNoSlice = ~uint32_t{0};

// One access, all of whose bytes take effect at once. An unaligned access that
// the CPU may tear is several accesses.
struct TraceAccess {
  AccessKind kind = AccessKind::kRead;
  TraceeAddr addr;
  uint32_t size_bytes = 0;  // 1..kAccessBytesMax
  // Reads: the variable (of width 8 * size_bytes) that stands for the value
  // read; nullptr if nothing depends on it.
  const Expr* read_value = nullptr;
  // Writes: the value, over variables that this thread has read before or, for
  // a read-modify-write, reads now, and over unknowns.
  const Expr* written_value = nullptr;
  // When it retired; bounds that are not known are 0 and the largest value.
  TscInterval time = {TscTicks(0), TscTicks(~uint64_t{0})};
  uint32_t slice = kNoSlice;  // index into ConstraintTrace::slices
  TraceeAddr ip;              // for people
};

struct TraceThread {
  Tid tid;
  std::vector<TraceAccess> accesses;  // program order
};

// Names an access: index into threads, then into its accesses.
struct AccessRef {
  uint32_t thread = 0;
  uint32_t index = 0;
  auto operator<=>(const AccessRef&) const = default;
};

// A stretch of one thread on one core. Of two slices of one core, the one with
// the smaller on_core ended before the other began.
struct TraceSlice {
  CoreId core;
  uint32_t on_core = 0;
};

struct InitialValue {
  TraceeAddr addr;
  uint32_t size_bytes = 0;      // 1..kAccessBytesMax
  const Expr* value = nullptr;  // a constant, or over unknowns
};

struct FinalDemand {
  TraceeAddr addr;
  uint32_t size_bytes = 0;
  uint64_t value = 0;
  GroupId group;
};

// A condition that must come out true. It mentions variables that `thread` has
// read among its first `after_accesses` accesses, and unknowns.
struct PathCondition {
  const Expr* condition = nullptr;  // width 1
  uint32_t thread = 0;
  uint32_t after_accesses = 0;
  GroupId group;
  TraceeAddr ip;
};

// `before` takes effect before `after`.
struct OrderFact {
  AccessRef before;
  AccessRef after;
  GroupId group;
};

struct ConstraintTrace {
  std::vector<EvidenceGroup> groups;
  std::vector<TraceThread> threads;
  std::vector<TraceSlice> slices;
  // No byte is listed twice. A byte that is accessed and not listed starts as
  // 0.
  std::vector<InitialValue> initial;
  std::vector<FinalDemand> final_memory;
  std::vector<PathCondition> path;
  std::vector<OrderFact> order;
  // Clocks of two cores may differ by this much: a is before b by time only if
  // hi(a) + clock_slack_ticks < lo(b).
  uint64_t clock_slack_ticks = 0;
  GroupId time_group;  // stands for all time intervals
  GroupId core_group;  // stands for all slices

  const TraceAccess& At(AccessRef ref) const {
    return threads[ref.thread].accesses[ref.index];
  }
  GroupId AddGroup(EvidenceKind kind, std::string label);
  size_t access_count() const;
};

// Checks what the comments above demand: indices, sizes, widths, that a
// variable is read once and only used afterwards by the same thread. Fails with
// kInvalidArgument if one does not hold.
[[nodiscard]] Status Validate(const ConstraintTrace& trace);

// Returns whether the time intervals alone order a before b (of different
// threads).
bool OrderedByTime(const ConstraintTrace& trace, const TraceAccess& a,
                   const TraceAccess& b);

// Narrows every interval to what program order leaves of it: afterwards both
// bounds ascend within each thread. Contradictory ones become empty (lo > hi).
void TightenTimes(ConstraintTrace& trace);

// One thread index per access: the claimed global order.
using AccessOrder = std::vector<uint32_t>;

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_TRACE_H_
