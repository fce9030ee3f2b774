#ifndef CLEW_RECORDER_TRACER_RUNTIME_SIGNALS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_SIGNALS_H_

#include <array>
#include <cstdint>

#include "common/linux/syscall_result.h"
#include "recorder/tracer/runtime/runtime.h"

// Signals for which the program has a handler. The kernel calls the runtime for
// each (tracer_signal, entries.S), on a stack of the runtime's, and what it
// wrote there is copied to where the program has its frames. What has to be put
// right are the registers in it; there are two cases.
//
// The CPU raised it (SIGSEGV by an instruction, ...): the copy of that
// instruction is where the frame says. Its address and registers are put into
// the frame, and the handler begins.
//
// It was sent. Then the thread may be anywhere: in the midst of a record, or in
// the runtime. So it is sent once more and *held*: all signals are blocked, and
// the thread goes on to the next *boundary*, where all registers of the program
// are in the state:
//
//   the log is full        at the target of its last record
//   before a system call   also if it came between the runtime's last look and
//                          the SYSCALL, or where the kernel would make the call
//                          again: its address tells that
//   behind a system call
//   a handler begins, or has returned
//
// There the mask is set to the program's, and so the kernel calls the runtime
// at once, with the vectors of that moment.
//
//   program    ... 31 records ... | handler's log ... | from the boundary on
//   kernel        ^ signal        ^ again, from LetIn
//
// rt_sigreturn has the program's frame, and does all of it but what only the
// kernel can do: vectors and mask, by a frame that leads into the runtime, at a
// boundary.

namespace clew::tracer {

// What a system call that was not begun, or is to be made again, returns.
inline constexpr auto kNotMade = static_cast<uint64_t>(kRestartSys);

// Makes a system call of the program, of which nothing but signals keeps the
// kernel. Returns kNotMade if one came before.
uint64_t MakeCall(uint64_t number, const std::array<uint64_t, 6>& arguments);

// The thread is at a boundary, at `addr`: a signal that was held comes now, and
// then this does not return.
void LetIn(ThreadState& thread, uint64_t addr);
// Likewise behind a system call, which may have had a mask of its own.
void LetInBehindCall(ThreadState& thread, uint64_t addr, uint64_t number,
                     const std::array<uint64_t, 6>& arguments);

// Makes rt_sigreturn for the program. Returns kNotMade, or not at all.
uint64_t ReturnFromHandler(ThreadState& thread,
                           const std::array<uint64_t, 6>& arguments);

// The signals of a thread that was made with CLONE_VM by a call of `flags`.
void BeginSignals(ThreadState& child, const ThreadState& parent,
                  uint64_t flags);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_SIGNALS_H_
