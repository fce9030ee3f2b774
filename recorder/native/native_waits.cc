#include "recorder/native/native_waits.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "common/linux/syscall_result.h"
#include "recorder/native/tracee/signal_disposition.h"
#include "recorder/qemu/calls/program_descriptor.h"
#include "recorder/qemu/calls/sent_signal.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;

// An absolute time limit that no clock of the host reaches.
constexpr timespec kFar = {.tv_sec = int64_t{1} << 33, .tv_nsec = 0};
// How long a thread that sends a signal waits before it looks again.
constexpr uint64_t kMomentTicks = 100;
// How much longer the kernel lets a thread wait which a signal is to find.
constexpr uint64_t kUntilSignalNs = 1'000'000'000;
constexpr uint64_t kLookForSignalsNs = 1'000'000;
constexpr uint64_t kTickNs = 1'000'000;  // no limit of a socket is shorter

// Whether the signal, sent to `thread`, would end a wait of it.
bool Interrupts(const TracedProcess& process, const NativeThread& thread,
                uint64_t signal) {
  constexpr uint64_t kSignals = 64;
  if (signal < 1 || signal > kSignals) {
    return false;
  }
  const auto mask = process.SignalMask(thread.tid);
  const Disposition disposition =
      DispositionOf(thread.tid, static_cast<int>(signal));
  return mask && (*mask >> (signal - 1) & 1) == 0 &&
         (disposition == Disposition::kHandled ||
          disposition == Disposition::kEnds);
}

// Whether it ended by the time limit that its socket has (socket(7),
// SO_RCVTIMEO): one that is not to wait ends likewise, but at once.
bool EndedBySocketLimit(const SyscallCall& call, int64_t result,
                        const GuestMemory& memory) {
  const Blocking blocking = call.row->blocking;
  if (result != -EAGAIN ||
      (blocking != Blocking::kReadable && blocking != Blocking::kWritable)) {
    return false;
  }
  uint64_t flags = 0;
  switch (call.number) {
    case __NR_recvfrom:
    case __NR_sendto:
    case __NR_sendmmsg:
      flags = call.args[3];
      break;
    case __NR_recvmsg:
    case __NR_sendmsg:
      flags = call.args[2];
      break;
    default:
      break;
  }
  const ProgramDescriptor descriptor(memory, static_cast<int>(call.args[0]));
  return (flags & MSG_DONTWAIT) == 0 && (descriptor.Flags() & O_NONBLOCK) == 0;
}

// Where a call writes how much was left when a signal ended it; 0: nowhere.
uint64_t RestAddr(const SyscallCall& call, const TimedWait& wait) {
  if (wait.absolute || wait.is_futex) {
    return 0;
  }
  return call.args[call.number == __NR_nanosleep ? 1 : 3];
}

// The host's clock at which `left_ns` more have passed.
timespec OnHost(uint64_t clock, uint64_t left_ns) {
  timespec now = {};
  clock_gettime(static_cast<clockid_t>(clock), &now);
  return ToTimespec(Nanoseconds(now) + left_ns);
}

}  // namespace

bool WaitsForever(const NativeThread& thread, int32_t process) {
  if (thread.state == State::kGone) {
    return true;
  }
  if (thread.state != State::kBlocked || !thread.call ||
      thread.call->row->blocking != Blocking::kFutex) {
    return false;
  }
  const FutexCall futex = ParseFutex(thread.call->args);
  const bool waits = futex.kind == FutexCall::Kind::kWait ||
                     futex.kind == FutexCall::Kind::kLock;
  return waits && !futex.timed &&
         (futex.is_private || !IsSharedMapping(futex.addr, process));
}

bool NativeWaits::IsDue(const TimedWait& wait) const {
  return state_.clock->clock().Now(state_.now) >= wait.deadline_ns;
}

bool NativeWaits::Hold(NativeThread& thread, const SyscallCall& call,
                       uint64_t sp) {
  if (AwaitTarget(thread, call)) {
    ++held_;
    return true;
  }
  if (!thread.wait || thread.wait_ip != thread.ip || thread.wait_sp != sp) {
    thread.wait =
        ParseTimedWait(call, state_.memory, state_.clock->clock(), state_.now);
    thread.wait_ip = thread.ip;
    thread.wait_sp = sp;
    if (thread.wait && !timers_signal_ && !IsDue(*thread.wait) &&
        thread.wait->deadline_ns != VirtualClock::kNever) {
      thread.wait->deadline_ns += lateness_.DrawNs();
    }
  }
  if (!thread.wait || timers_signal_ || thread.is_interrupted ||
      IsDue(*thread.wait) || thread.wait->Changed(state_.memory)) {
    return false;
  }
  ++held_;
  return true;
}

// Returns whether `call`, which sends a signal to a thread that is held, has to
// wait until that one waits in the kernel.
bool NativeWaits::AwaitTarget(NativeThread& thread, const SyscallCall& call) {
  const auto sent = SignalOf(call);
  if (!sent) {
    return false;
  }
  ReleaseIf([&](NativeThread& held) {
    held.is_interrupted =
        static_cast<uint64_t>(held.tid.as_int()) == sent->tid &&
        Interrupts(state_.process, held, sent->signal);
    return held.is_interrupted;
  });
  const auto on_its_way = [](const auto& other) {
    return other->is_interrupted &&
           (other->state == State::kWaiting || other->state == State::kOnCore);
  };
  if (!std::ranges::any_of(state_.threads, on_its_way)) {
    return false;
  }
  thread.wait = TimedWait{
      .deadline_ns = state_.clock->clock().Now(state_.now + kMomentTicks)};
  thread.wait_ip = 0;  // it is not its own
  return true;
}

std::optional<int64_t> NativeWaits::Begin(NativeThread& thread,
                                          const SyscallCall& call) {
  timers_signal_ |= StartsTimer(call) && call.number != __NR_timerfd_settime;
  thread.begun_ns = state_.clock->clock().Now(state_.now);
  thread.begun_host_ns = HostNs();
  if (!thread.wait) {
    thread.host_limit_ns = HostLimit(call, state_.MemoryOf(thread),
                                     state_.clock->clock(), state_.now);
    return std::nullopt;
  }
  const TimedWait& wait = *thread.wait;
  thread.host_limit_ns.reset();
  if (wait.Changed(state_.memory)) {
    return std::nullopt;
  }
  if (IsDue(wait)) {
    return wait.is_futex ? -int64_t{ETIMEDOUT} : 0;
  }
  thread.host_limit_ns = wait.deadline_ns;
  ShowLimit(thread, wait);
  return std::nullopt;
}

// The kernel keeps the time limit.
void NativeWaits::ShowLimit(NativeThread& thread, const TimedWait& wait) {
  timespec shown = kFar;
  if (wait.deadline_ns != VirtualClock::kNever) {
    const uint64_t left_ns = wait.deadline_ns -
                             state_.clock->clock().Now(state_.now) +
                             (thread.is_interrupted ? kUntilSignalNs : 0);
    shown = wait.absolute ? OnHost(wait.clock, left_ns) : ToTimespec(left_ns);
  }
  // Where it cannot be shown, the kernel takes the program's.
  (void)thread.kernel_view.Show(state_.memory, wait.timespec_addr, &shown,
                                sizeof(shown));
}

void NativeWaits::End(NativeThread& thread, const SyscallCall& call,
                      int64_t result) {
  ProgramClock& clock = *state_.clock;
  if (thread.host_limit_ns && EndedByLimit(call.number, result)) {
    clock.EndWait(*thread.host_limit_ns, state_.now);
  }
  const uint64_t took_ns = HostNs() - thread.begun_host_ns;
  if (took_ns >= kTickNs &&
      EndedBySocketLimit(call, result, state_.MemoryOf(thread))) {
    // The kernel keeps it: so much has passed for the program, too.
    clock.SkipTo(thread.begun_ns + took_ns, state_.now);
  }
  thread.host_limit_ns.reset();
  thread.is_interrupted = false;
  if (result == kRestartSys) {
    return;  // it is made once more, until the same time
  }
  const auto wait = std::exchange(thread.wait, std::nullopt);
  if (!wait || result != -EINTR) {
    return;
  }
  if (const uint64_t rest_addr = RestAddr(call, *wait); rest_addr != 0) {
    const uint64_t now = clock.clock().Now(state_.now);
    const timespec rest = ToTimespec(std::max(wait->deadline_ns, now) - now);
    // Where it cannot be written, the kernel would not have, either.
    (void)state_.memory.Write(rest_addr, &rest, sizeof(rest));
  }
}

template <class Condition>
void NativeWaits::ReleaseIf(const Condition& condition) {
  if (held_ == 0) {
    return;
  }
  for (const auto& thread : state_.threads) {
    if (thread->state == State::kHeld && condition(*thread)) {
      thread->state = State::kWaiting;
      --held_;
      on_ready_(*thread);
    }
  }
}

void NativeWaits::NoteWake(const SyscallCall& call, int64_t result) {
  if (call.number != __NR_futex || result < 0) {
    return;
  }
  const FutexCall futex = ParseFutex(call.args);
  if (futex.kind == FutexCall::Kind::kWait) {
    return;
  }
  NoteChange(futex.addr);
  if (futex.kind == FutexCall::Kind::kWakeOp) {
    NoteChange(futex.addr2);
  }
}

void NativeWaits::NoteChange(uint64_t addr) {
  ReleaseIf([&](const NativeThread& held) {
    return held.wait && held.wait->futex_addr == addr &&
           held.wait->Changed(state_.memory);
  });
}

void NativeWaits::Release() {
  if (held_ == 0) {
    return;
  }
  ReleaseIf([this](const NativeThread& held) {
    return !held.wait || IsDue(*held.wait);
  });
  ReleaseSignaled();
}

// By other processes: of its own signals a thread hears before.
void NativeWaits::ReleaseSignaled() {
  const uint64_t now_ns = HostNs();
  if (held_ == 0 || now_ns - signals_seen_ns_ < kLookForSignalsNs) {
    return;
  }
  signals_seen_ns_ = now_ns;
  ReleaseIf([this](NativeThread& held) {
    held.is_interrupted = IsSignalDue(state_.process, held.tid);
    return held.is_interrupted;
  });
}

bool NativeWaits::SkipToDeadline() {
  const uint64_t held = held_;
  ReleaseIf([this](const NativeThread& thread) {
    const TimedWait wait = thread.wait.value_or(TimedWait());
    return wait.Changed(state_.memory) &&
           IsSharedMapping(wait.futex_addr, state_.process.process());
  });
  if (held_ < held) {
    return true;
  }
  uint64_t first_ns = VirtualClock::kNever;
  for (const auto& thread : state_.threads) {
    const auto& wait = thread->wait;
    if (thread->state == State::kHeld && wait) {
      first_ns = std::min(first_ns, wait->deadline_ns);
    } else if (WaitsOutside(*thread)) {
      return false;
    }
  }
  if (first_ns == VirtualClock::kNever || state_.uses_timers || HasChild()) {
    return false;
  }
  state_.clock->SkipTo(first_ns, state_.now);
  Release();
  return true;
}

bool NativeWaits::WaitsOutside(const NativeThread& thread) const {
  return thread.state == State::kBlocked &&
         !WaitsForever(thread, state_.process.process());
}

// Which may be what the program waits for.
bool NativeWaits::HasChild() const {
  return std::ranges::any_of(state_.threads, [](const auto& thread) {
    return thread->state != State::kGone &&
           !TracedProcess::ThreadText(thread->tid, "children").empty();
  });
}

}  // namespace clew::recorder
