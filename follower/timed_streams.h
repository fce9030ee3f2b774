#ifndef CLEW_FOLLOWER_TIMED_STREAMS_H_
#define CLEW_FOLLOWER_TIMED_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/stream.h"

namespace clew::follower {

// Streams whose times are narrowed by the times of system calls: what a thread
// retired before a call did so before the kernel was entered, what comes after
// it after the kernel was left. The call itself takes effect between the two:
// where one thread ran at a time, as it is entered. A time outside of the
// block's bounds
// is not used, nor are those of calls after a gap. Holds back at most what may
// still be narrowed, and no more than kHeldMax blocks a thread.
//
// Not thread-safe.
class TimedStreams final : public StreamSource {
 public:
  static constexpr size_t kHeldMax = 1u << 16;

  // Both are borrowed and must outlive it. It reads the inputs to their end.
  TimedStreams(StreamSource& streams, InputSource& inputs, bool ran_at_once)
      : streams_(streams), inputs_(inputs), ran_at_once_(ran_at_once) {}

  const std::vector<Tid>& threads() const override {
    return streams_.threads();
  }
  const std::vector<Slice>& slices() const override {
    return streams_.slices();
  }
  [[nodiscard]] Result<std::optional<StreamItem>> Next(Tid thread) override;
  TscTicks NotBefore(Tid thread) override;

 private:
  struct Thread {
    std::deque<StreamItem> held;
    uint64_t final_count = 0;  // from the front: not narrowed any more
    // Of the last system call whose entry was of use.
    TscTicks entered_tsc;
    TscTicks left_tsc;
    bool ended = false;  // the stream, or what calls can be matched with
  };
  Result<std::optional<StreamItem>> PullOne(Tid tid, const Thread& thread);
  Status Pull(Tid tid, Thread& thread);
  Status NarrowBySyscall(Tid tid, Thread& thread);
  TscInterval EffectOf(const SyscallInput& call, TscInterval own) const;
  Result<std::optional<SyscallInput>> NextSyscall(Tid tid);

  StreamSource& streams_;
  InputSource& inputs_;
  bool ran_at_once_;
  std::map<Tid, Thread> threads_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_TIMED_STREAMS_H_
