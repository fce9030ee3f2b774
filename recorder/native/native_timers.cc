#include "recorder/native/native_timers.h"

#include <asm/unistd_64.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

#include "recorder/qemu/timer_values.h"

namespace clew::recorder {
namespace {

using Kind = ProgramTimers::Kind;

constexpr uint64_t kRedZoneBytes = 128;
constexpr uint64_t kAbsolute = TFD_TIMER_ABSTIME;
static_assert(TIMER_ABSTIME == TFD_TIMER_ABSTIME);

}  // namespace

std::optional<NativeTimers::Timer> NativeTimers::TimerOf(
    const SyscallCall& call) {
  const auto& args = call.args;
  const auto descriptor =
      ProgramTimers::Key{Kind::kDescriptor, static_cast<uint32_t>(args[0])};
  const auto posix =
      ProgramTimers::Key{Kind::kPosix, static_cast<uint32_t>(args[0])};
  switch (call.number) {
    case __NR_timerfd_settime:
    case __NR_timer_settime:
      return Timer{
          .key = call.number == __NR_timer_settime ? posix : descriptor,
          .sets = true,
          .wanted_addr = args[2],
          .left_addr = args[3],
          .absolute = (args[1] & kAbsolute) != 0};
    case __NR_timerfd_gettime:
    case __NR_timer_gettime:
      return Timer{
          .key = call.number == __NR_timer_gettime ? posix : descriptor,
          .left_addr = args[1]};
    case __NR_setitimer:
    case __NR_getitimer: {
      const bool sets = call.number == __NR_setitimer;
      return static_cast<int>(args[0]) != ITIMER_REAL
                 ? std::nullopt
                 : std::optional(Timer{.sets = sets,
                                       .wanted_addr = sets ? args[1] : 0,
                                       .left_addr = args[sets ? 2 : 1],
                                       .in_us = true});
    }
    case __NR_alarm:
      return Timer{.sets = true, .in_us = true};
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> NativeTimers::ClockOf(
    const ProgramTimers::Key& key) const {
  if (key.kind == Kind::kReal) {
    return CLOCK_MONOTONIC;
  }
  if (key.kind == Kind::kPosix) {
    const auto found = clocks_.find(key.id);
    return found == clocks_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string info =
      state_.process.ProcText(fmt::format("fdinfo/{}", key.id));
  constexpr std::string_view kName = "clockid: ";
  const size_t at = info.find(kName);
  uint64_t clock = 0;
  return at != std::string::npos &&
                 std::sscanf(info.c_str() + at + kName.size(), "%" SCNu64,
                             &clock) == 1
             ? std::optional(clock)
             : std::nullopt;
}

std::optional<itimerspec> NativeTimers::Load(uint64_t addr, bool in_us) const {
  if (!in_us) {
    return state_.memory.Load<itimerspec>(addr);
  }
  const auto value = state_.memory.Load<itimerval>(addr);
  return value ? std::optional(ToItimerspec(*value)) : std::nullopt;
}

std::optional<itimerspec> NativeTimers::Wanted(const Timer& timer,
                                               const SyscallCall& call) const {
  if (call.number == __NR_alarm) {
    return itimerspec{
        .it_interval = {},
        .it_value = {.tv_sec = static_cast<uint32_t>(call.args[0]),
                     .tv_nsec = 0}};
  }
  return timer.wanted_addr == 0 ? std::nullopt
                                : Load(timer.wanted_addr, timer.in_us);
}

ProgramTimers::Now NativeTimers::Now() const {
  return {.host_ns = HostNs(), .ticks = state_.now};
}

std::optional<user_regs_struct> NativeTimers::Begin(
    NativeThread& thread, const SyscallCall& call,
    const user_regs_struct& registers) {
  before_.reset();
  const auto timer = TimerOf(call);
  const auto wanted = timer ? Wanted(*timer, call) : std::nullopt;
  const auto clock = wanted ? ClockOf(timer->key) : std::nullopt;
  if (!clock) {
    return std::nullopt;
  }
  state_.clock->CatchUp(state_.now);
  ProgramTimers& timers = state_.clock->timers();
  before_ = timers;
  const auto host =
      timers.Set(timer->key, *clock, timer->absolute, *wanted, Now());
  if (!host) {
    before_.reset();
    return std::nullopt;
  }
  const itimerval in_us = ToItimerval(*host);
  const void* const shown =
      timer->in_us ? static_cast<const void*>(&in_us) : &*host;
  user_regs_struct made = registers;
  uint64_t addr = timer->wanted_addr;
  if (call.number == __NR_alarm) {  // in whole seconds alone
    addr = registers.rsp - kRedZoneBytes - sizeof(in_us);
    made.rax = __NR_setitimer;
    made.rdi = ITIMER_REAL;
    made.rsi = addr;
    made.rdx = 0;
  } else if (!timer->in_us) {
    made.rsi &= ~kAbsolute;
  }
  static_assert(sizeof(itimerval) == sizeof(itimerspec));
  if (!thread.kernel_view.Show(state_.memory, addr, shown, sizeof(in_us))) {
    timers = *before_;
    before_.reset();
    return std::nullopt;
  }
  return made;
}

int64_t NativeTimers::End(const SyscallCall& call, int64_t result) {
  const auto before = std::exchange(before_, std::nullopt);
  if (call.number == __NR_timer_create && result == 0) {
    if (const auto made = state_.memory.Load<uint32_t>(call.args[2])) {
      clocks_[*made] = call.args[0];
    }
  }
  const auto timer = TimerOf(call);
  if (!timer) {
    return result;
  }
  ProgramTimers& timers = state_.clock->timers();
  if (result < 0) {
    if (before) {
      timers = *before;
    }
    return result;
  }
  if (timer->sets && !before) {
    return result;  // a clock that the virtual one is not
  }
  state_.clock->CatchUp(state_.now);
  const ProgramTimers& asked = before ? *before : timers;
  if (call.number == __NR_alarm) {
    const itimerspec some = {.it_interval = {},
                             .it_value = {.tv_sec = 0, .tv_nsec = 1}};
    return asked.IsArmed(timer->key)
               ? AlarmSeconds(
                     ToTimeval(asked.Left(timer->key, some, Now()).it_value))
               : 0;
  }
  const auto told = timer->left_addr == 0
                        ? std::nullopt
                        : Load(timer->left_addr, timer->in_us);
  if (told) {
    const itimerspec left = asked.Left(timer->key, *told, Now());
    const itimerval in_us = ToItimerval(left);
    const void* const shown =
        timer->in_us ? static_cast<const void*>(&in_us) : &left;
    // The kernel just could.
    (void)state_.memory.Write(timer->left_addr, shown, sizeof(in_us));
  }
  return result;
}

}  // namespace clew::recorder
