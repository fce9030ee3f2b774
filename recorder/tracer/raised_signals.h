#ifndef CLEW_RECORDER_TRACER_RAISED_SIGNALS_H_
#define CLEW_RECORDER_TRACER_RAISED_SIGNALS_H_

#include <signal.h>

#include <cstdint>

namespace clew::tracer {

constexpr uint64_t SignalBit(uint64_t signal) { return 1ull << (signal - 1); }

// Those that instructions raise, which end a program that blocks them.
inline constexpr uint64_t kRaisedSignals =
    SignalBit(SIGSEGV) | SignalBit(SIGBUS) | SignalBit(SIGFPE) |
    SignalBit(SIGILL) | SignalBit(SIGTRAP);

// Whether an instruction has raised it: nobody sent it.
// Source: kernel, include/uapi/asm-generic/siginfo.h: greater than 0 of what
// the kernel raises.
constexpr bool IsRaised(int signal, int code) {
  return (kRaisedSignals & SignalBit(static_cast<uint64_t>(signal))) != 0 &&
         code > 0;
}

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RAISED_SIGNALS_H_
