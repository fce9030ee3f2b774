#ifndef CLEW_RECORDER_NATIVE_NATIVE_TIMERS_H_
#define CLEW_RECORDER_NATIVE_NATIVE_TIMERS_H_

#include <sys/user.h>

#include <cstdint>
#include <map>
#include <optional>

#include "recorder/native/native_state.h"
#include "recorder/qemu/program_timers.h"

namespace clew::recorder {

// The calls by which the program sets and reads its timers. They show the
// kernel how long a timer has to run, and the program what is left by the clock
// that it reads (program_timers.h). They do not wait: between Begin and End no
// other thread's call comes.
class NativeTimers {
 public:
  // `state` outlives this. The methods require state.clock.
  explicit NativeTimers(NativeState& state) : state_(state) {}

  // `call` is about to be made with `registers`. Returns those with which it is
  // to be made, if others.
  std::optional<user_regs_struct> Begin(NativeThread& thread,
                                        const SyscallCall& call,
                                        const user_regs_struct& registers);
  // Whether the call that was begun last sets a timer, and has not ended: it is
  // made with other arguments than the program's.
  bool sets() const { return before_.has_value(); }
  // It had that result. Returns the one that the program sees.
  int64_t End(const SyscallCall& call, int64_t result);

 private:
  // A timer that a call sets, or asks for.
  struct Timer {
    ProgramTimers::Key key = {};
    bool sets = false;
    uint64_t wanted_addr = 0;  // what it sets; 0: nowhere
    uint64_t left_addr = 0;    // where what is left is asked for; 0: nowhere
    bool in_us = false;        // itimerval, else itimerspec
    bool absolute = false;
  };
  static std::optional<Timer> TimerOf(const SyscallCall& call);
  std::optional<uint64_t> ClockOf(const ProgramTimers::Key& key) const;
  std::optional<itimerspec> Wanted(const Timer& timer,
                                   const SyscallCall& call) const;
  std::optional<itimerspec> Load(uint64_t addr, bool in_us) const;
  ProgramTimers::Now Now() const;

  NativeState& state_;
  std::map<uint64_t, uint64_t> clocks_;  // by timer_create(2)'s number
  // As they were before the call that sets one.
  std::optional<ProgramTimers> before_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_TIMERS_H_
