#include "follower/describe_run.h"

#include <fmt/format.h>

#include "follower/failure_check.h"

namespace clew::follower {

std::string Describe(const Contradiction& contradiction) {
  return fmt::format("thread {} at {:#x} after {} instructions: {}",
                     contradiction.tid, contradiction.ip,
                     contradiction.insn_index, contradiction.text);
}

std::optional<std::string> WhyNotReached(const Process& process, size_t thread,
                                         const Advance& advance) {
  if (advance.stop == Advance::Stop::kReached) {
    return std::nullopt;
  }
  if (advance.stop == Advance::Stop::kContradiction) {
    return Describe(process.contradiction());
  }
  return fmt::format("thread {} after {} instructions cannot go on",
                     process.tid(thread), process.thread(thread).retired);
}

Result<std::optional<std::string>> CheckEnd(Process& process,
                                            const Failure& failure) {
  for (size_t i = 0; i < process.thread_count(); ++i) {
    CLEW_ASSIGN_OR_RETURN(block, process.NextBlock(i));
    if (block != nullptr) {
      return fmt::format("the schedule ends, thread {} does not",
                         process.tid(i));
    }
    if (const auto store = process.OldestStore(i)) {
      return fmt::format(
          "the schedule ends, a store of thread {} to {:#x} waits",
          process.tid(i), store->addr);
    }
  }
  CLEW_ASSIGN_OR_RETURN(differs, CheckFailure(process, failure));
  return differs ? std::optional(Describe(*differs)) : std::nullopt;
}

}  // namespace clew::follower
