// What a recorded process puts into its own pipes, socket pairs and eventfds
// and takes out of them.
#include "follower/process.h"

namespace clew::follower {

void Process::EnterChannels(size_t thread, const SyscallInput& call) {
  threads_[thread].taking = {};
  if (!options_.force_path && Channels::Concerns(call.number)) {
    undo_.KeepOnce(&UndoEntry::channels, channels_);
    channels_.Enter(call, memory_);
    threads_[thread].taking = channels_.Source(call);
  }
}

void Process::ReturnToChannels(const SyscallInput& call) {
  if (!options_.force_path && Channels::Concerns(call.number)) {
    undo_.KeepOnce(&UndoEntry::channels, channels_);
    channels_.Return(call);
  }
}

// REQUIRES: the thread is in a call.
bool Process::MayReturn(const ThreadState& state) const {
  if (state.taking.channel != Channels::kNone) {
    return channels_.MayTake(state.taking);
  }
  return !state.needs_wake || futexes_.MayReturn(state.wait_addr);
}

}  // namespace clew::follower
