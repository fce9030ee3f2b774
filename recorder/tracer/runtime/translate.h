#ifndef CLEW_RECORDER_TRACER_RUNTIME_TRANSLATE_H_
#define CLEW_RECORDER_TRACER_RUNTIME_TRANSLATE_H_

#include <cstdint>
#include <optional>

#include "recorder/tracer/runtime/code/encode.h"
#include "recorder/tracer/runtime/runtime.h"

// Translates fragments: stretches of code, from where control enters them, past
// conditional branches, to the first transfer that is not conditional.
//
// An instruction is copied as it is. What changes is
//
//   operands relative to RIP    the displacement; or, where the copy does not
//                               reach, the address goes through a register
//   JCC, LOOP, JRCXZ            jump behind the fragment, where the record is
//                               written, and on to the target
//   JMP, CALL                   a CALL pushes the program's return address
//   indirect JMP, CALL; RET     look the target up (LookupEntry)
//   SYSCALL                     enters the runtime
//
// Nothing changes a flag (MOV, LEA, JRCXZ, PEXT alone), or touches the stack
// below RSP: what needs a register saves it in the thread's state.
//
// A record is written by
//
//   mov rcx, gs:[log_index]
//   mov dword gs:[rcx + kLogEnd], record
//   lea rcx, [rcx + 4]
//   mov gs:[log_index], rcx
//   jrcxz full
//
// so that the end of the log is the only test there is.

namespace clew::tracer {

// REQUIRES, of all that follows: the caller has the runtime's lock.

// Returns the fragment that starts at `addr`; 0: it was not translated.
[[nodiscard]] uint32_t KnownFragmentAt(Runtime& runtime, uint64_t addr);

// Returns the fragment that starts at `addr`, which is translated if it was
// not; 0 if the program cannot execute what is there.
[[nodiscard]] uint32_t FragmentAt(Runtime& runtime, uint64_t addr);

// Where an indirect transfer to the fragment goes.
[[nodiscard]] uint64_t IndirectEntry(Runtime& runtime, uint32_t fragment);

// Lets the jump of an edge lead to a fragment from now on.
void Link(Runtime& runtime, uint32_t edge, uint32_t fragment);

// What a copy at an address in a cache is the copy of.
struct CopiedInsn {
  uint64_t addr = 0;
  // Its value is in the state; kNoRegister: none.
  Register saved = kNoRegister;
};
// Returns nullopt for what is in no cache.
[[nodiscard]] std::optional<CopiedInsn> InsnOfCopy(Runtime& runtime,
                                                   uint64_t ip);

// Sets up an empty cache at `addr`.
void BeginArena(Arena& arena, uint64_t addr);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_TRANSLATE_H_
