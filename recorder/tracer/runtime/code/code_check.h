#ifndef CLEW_RECORDER_TRACER_RUNTIME_CODE_CODE_CHECK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_CODE_CODE_CHECK_H_

#include <cstdint>
#include <span>

#include "recorder/tracer/runtime/code/arena.h"
#include "recorder/tracer/runtime/code/copy_insn.h"

// Code that may change without a system call: what lies where the program can
// write, or others can (MAP_SHARED). A fragment of it
//
//   begins with a *check*: its bytes are compared with those that it is a copy
//   of; if they differ the runtime is entered, and drops it (versions.h)
//
//   ends behind an instruction that may write memory, so that what that changes
//   is seen by the check of the next one
//
//   check   cmp [0x1000], "c7 05 01 00 ..."  differs: enter the runtime
//   0x1000  mov dword [rip + 1], 3
//   check   cmp [0x100a], "b8 01 00 ..."     differs: by now it is "b8 03 ..."
//   0x100a  mov eax, 1
//
// So a thread runs the code that was there when it came to the fragment: what
// it wrote itself, and what others wrote in time for it to know. Pushes are not
// taken for writes: nobody pushes onto code.

namespace clew::tracer {

// Whether it may write memory otherwise than by a push.
bool MayWrite(const Insn& insn);

// Writes the check of a fragment, which starts at `start` and is a copy of
// `code`, and a jump to `body` behind it. Returns where it begins.
uint64_t WriteCheck(Arena& arena, uint32_t fragment, uint64_t start,
                    std::span<const uint8_t> code, uint64_t body);
// What it takes for each byte of code, at most.
inline constexpr uint64_t kCheckBytesPerByte = 32;

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_CODE_CODE_CHECK_H_
