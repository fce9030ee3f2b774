#ifndef CLEW_DAEMON_LOOP_COUNTERS_H_
#define CLEW_DAEMON_LOOP_COUNTERS_H_

#include <cstdint>
#include <string>

namespace clew::daemon {

// Since the start of clewd: name, and what it means to an operator.
#define CLEW_DAEMON_COUNTERS(X)                                              \
  X(triggers, "failures and requests noticed")                               \
  X(saved, "bundles that became ready to be sent")                           \
  X(duplicates, "triggers of a process that had one just before")            \
  X(refused_rate, "not saved: rate_failure or rate_all was reached")         \
  X(refused_busy, "not saved: saves, or half of them for one user, at work") \
  X(refused_budget, "not saved: no room in the spool")                       \
  X(refused_no_source, "not saved: no trace is being recorded")              \
  X(save_failures, "not saved: the trace or the disk failed")                \
  X(refused_bundles, "bundles in refused/: broken, or never to be taken")    \
  X(stuck, "bundles in stuck/: what is tried failed again and again")        \
  X(unchecked, "sent without a sufficiency score: the check failed")         \
  X(cores_cut, "core dumps left out: too large, or the copy broke")          \
  X(unanswered, "looks at processes of the host that had no answer in time") \
  X(uploaded, "bundles that the collector acknowledged")                     \
  X(upload_failures, "attempts to send that will be repeated")               \
  X(evicted, "sent or refused bundles removed to make room")                 \
  X(junk, "of other names in incoming/, removed after a day")                \
  X(over_quota, "removed from incoming/: more than one user may have there") \
  X(lost, "bundles removed to make room before they were sent")

struct Counters {
#define CLEW_DAEMON_COUNTER(name, meaning) uint64_t name = 0;
  CLEW_DAEMON_COUNTERS(CLEW_DAEMON_COUNTER)
#undef CLEW_DAEMON_COUNTER
};

// The last thing that went wrong, for the status.
struct LastError {
  int64_t at_ns = 0;  // wall clock; 0: nothing yet
  std::string message;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_COUNTERS_H_
