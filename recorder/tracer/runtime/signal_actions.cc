#include "recorder/tracer/runtime/signal_actions.h"

#include <sys/syscall.h>

#include <cerrno>
#include <utility>

#include "recorder/tracer/raised_signals.h"
#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/program_memory.h"
#include "recorder/tracer/runtime/signal_mask.h"

extern "C" {
// In entries.S: what the kernel calls.
[[gnu::visibility("hidden")]] void tracer_signal();
}

namespace clew::tracer {
namespace {

constexpr uint64_t kSignalMax = std::tuple_size_v<Actions> - 1;
constexpr uint64_t kFlagsOfRuntime = SA_SIGINFO | SA_ONSTACK;
constexpr uint64_t kFlagsOfProgram =
    kFlagsOfRuntime | uint64_t{SA_RESETHAND} | SA_NODEFER;

uint64_t Entry() { return reinterpret_cast<uint64_t>(tracer_signal); }

uint64_t SetInKernel(uint64_t signal, const KernelAction* wanted,
                     KernelAction* old) {
  return Call(SYS_rt_sigaction, signal, AddrOf(wanted), AddrOf(old),
              sizeof wanted->mask);
}

KernelAction Installed(const KernelAction& wanted) {
  KernelAction installed = wanted;
  installed.handler = Entry();
  installed.flags = (wanted.flags & ~kFlagsOfProgram) | kFlagsOfRuntime;
  installed.mask = ~0ull;
  return installed;
}

// As the kernel would tell it, which forgets what it does not know.
KernelAction Told(const KernelAction& wanted, const KernelAction& installed) {
  KernelAction told = wanted;
  told.flags &= installed.flags | kFlagsOfProgram;
  told.mask &= ~(SignalBit(SIGKILL) | SignalBit(SIGSTOP));
  return told;
}

}  // namespace

uint64_t SetAction(ThreadState& thread,
                   const std::array<uint64_t, 6>& arguments) {
  const uint64_t signal = arguments[0];
  const uint64_t wanted_at = arguments[1];
  const uint64_t old_at = arguments[2];
  if (arguments[3] != sizeof(KernelAction::mask)) {
    return static_cast<uint64_t>(-EINVAL);
  }
  KernelAction wanted;
  if (wanted_at != 0) {
    if (!CanRead(wanted_at, sizeof wanted)) {
      return static_cast<uint64_t>(-EFAULT);
    }
    wanted = *reinterpret_cast<const KernelAction*>(wanted_at);
  }
  if (signal == 0 || signal > kSignalMax) {
    return static_cast<uint64_t>(-EINVAL);
  }
  KernelAction old;
  {
    const Locked locked(RuntimeOf(thread).lock);
    KernelAction& action = ActionsOf(thread)[signal];
    const KernelAction before = action;
    uint64_t result = 0;
    if (wanted.has_handler()) {
      // First here: the kernel may call it at once.
      action = wanted;
      const KernelAction installed = Installed(wanted);
      result = SetInKernel(signal, &installed, &old);
    } else {
      result = SetInKernel(signal, wanted_at == 0 ? nullptr : &wanted, &old);
    }
    if (IsError(result)) {
      action = before;
      return result;
    }
    if (wanted_at != 0) {
      action = wanted;
    }
    if (old.handler == Entry()) {
      old = Told(before, old);
    }
  }
  if (old_at != 0) {
    if (!CanWrite(old_at, sizeof old)) {
      return static_cast<uint64_t>(-EFAULT);
    }
    *reinterpret_cast<KernelAction*>(old_at) = old;
  }
  return 0;
}

void TakeOverActions(Runtime& runtime) {
  for (uint64_t signal = 1; signal <= kSignalMax; ++signal) {
    KernelAction& action = runtime.actions[signal];
    SetInKernel(signal, nullptr, &action);
    if (action.has_handler()) {
      const KernelAction installed = Installed(action);
      SetInKernel(signal, &installed, nullptr);
    }
  }
}

void GiveBackActions(Runtime& runtime) {
  const Locked locked(runtime.lock);
  for (uint64_t signal = 1; signal <= kSignalMax; ++signal) {
    const KernelAction& action = runtime.actions[signal];
    if (action.has_handler()) {
      SetInKernel(signal, &action, nullptr);
    }
  }
}

KernelAction TakeAction(ThreadState& thread, uint64_t signal) {
  const Locked locked(RuntimeOf(thread).lock);
  KernelAction& action = ActionsOf(thread)[signal];
  if ((action.flags & uint64_t{SA_RESETHAND}) == 0) {
    return action;
  }
  const KernelAction none;
  SetInKernel(signal, &none, nullptr);
  return std::exchange(action, none);
}

void CopyActions(ThreadState& thread, const ThreadState& from) {
  auto* const own = reinterpret_cast<Actions*>(AddrOf(&thread) + kActionsAt);
  *own = *static_cast<const Actions*>(from.signals.actions);
  thread.signals.actions = own;
}

void EndBy(uint64_t signal) {
  const KernelAction none;
  SetInKernel(signal, &none, nullptr);
  for (;;) {
    Call(SYS_tgkill, Call(SYS_getpid), Call(SYS_gettid), signal);
    SetMask(~SignalBit(signal));
  }
}

}  // namespace clew::tracer
