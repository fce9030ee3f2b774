#ifndef CLEW_FOLLOWER_THREAD_CPU_H_
#define CLEW_FOLLOWER_THREAD_CPU_H_

#include <optional>

#include "follower/process.h"

namespace clew::follower {

// Runs a thread on the concrete machine, or on the engine that was plugged in.
class Process::ThreadCpu {
 public:
  ThreadCpu(Process& process, size_t thread)
      : engine_(process.engine_),
        stops_to_drain_(process.stops_to_drain_),
        state_(process.threads_[thread]),
        thread_(thread) {
    if (engine_ == nullptr) {
      machine_
          .emplace(process.threads_[thread].registers, process.memory_,
                   *process.code_)
          .set_observer(process.observer_);
    }
  }
  machine::Stop Run(uint64_t max_insns) {
    if (auto* const buffer = state_.buffer.get(); buffer && machine_) {
      machine_->set_store_buffer(buffer, state_.retired, stops_to_drain_);
    }
    return machine_ ? machine_->Run(max_insns)
                    : engine_->Run(thread_, max_insns);
  }
  void CompleteInsn(const InsnInput& input) {
    if (machine_) {
      machine_->CompleteInsn(input);
    } else {
      engine_->CompleteInsn(thread_, input);
    }
  }

 private:
  Engine* engine_;
  bool stops_to_drain_;
  const ThreadState& state_;
  size_t thread_;
  std::optional<machine::Machine> machine_;  // where there is no engine
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_THREAD_CPU_H_
