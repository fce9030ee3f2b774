#include "replayer/arrive.h"

#include "follower/describe_run.h"
#include "follower/engine.h"

namespace clew::replayer {
namespace {

// Stops before the first instruction, which is when the kernel's part is done.
class StopAtOnce final : public follower::Engine {
 public:
  machine::Stop Run(size_t, uint64_t) override {
    machine::Stop stop;
    stop.kind = machine::StopKind::kObserver;
    return stop;
  }
  void CompleteInsn(size_t, const InsnInput&) override {}
  void OnSyscall(size_t, const SyscallInput&) override {}
  void OnKernelWrite(size_t, uint64_t, uint64_t) override {}
  void OnReturn(size_t, const SyscallInput&) override {}
  void OnThreadCreated(size_t, size_t) override {}
  void OnForced(size_t) override {}
};

}  // namespace

Result<bool> Arrive(follower::Process& process, size_t thread) {
  const follower::ThreadState& state = process.thread(thread);
  CLEW_ASSIGN_OR_RETURN(next, process.NextBlock(thread));
  if (next == nullptr || state.block_done != 0 ||
      state.registers.rip == next->ip.as_int()) {
    return false;
  }
  StopAtOnce engine;
  process.set_engine(&engine);
  const auto advance = process.Run(thread, state.retired + 1);
  process.set_engine(nullptr);
  CLEW_RETURN_IF_ERROR(advance);
  if (advance->stop != follower::Advance::Stop::kObserver) {
    return CorruptInput("the replay diverges: {}",
                        follower::WhyNotReached(process, thread, *advance)
                            .value_or("no next instruction was reached"));
  }
  return true;
}

}  // namespace clew::replayer
