#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_H_

#include <cstdint>
#include <vector>

namespace clew::tracer {

// Returns the bytes of a static x86-64 program (ELF, not position independent)
// that runs random code, and ends by exit_group(0) after some
// thousand instructions. For comparing a translator of machine code with single
// steps: what it covers is the encodings of transfers and of operands in
// memory.
//
//   addresses    from 0x400000, or above 0x200000000000; data next to the code
//                and 1.9 GiB above it; blocks anywhere, often across pages
//   stack        its own or the kernel's; not always aligned; RSP changes by
//                whatever instructions do to it; the red zone is used, across
//                transfers too
//   transfers    Jcc, LOOP, JRCXZ, JECXZ, JMP, CALL, with displacements of 8
//                and 32 bits, forward, backward, to themselves and to what
//                follows; JMP and CALL through each register and all kinds of
//                operands, tables too; RET with and without a CALL; calls of
//                the next instruction; SYSCALL; jumps into an instruction;
//                idle prefixes (BND, NOTRACK, hints, REX, 67)
//   operands     relative to RIP with and without immediates behind, of
//                integer, SSE, AVX2, BMI and AVX-512 instructions, whatever
//                registers those name besides; at data, code and the stack;
//                absolute; FS; LOCK; addresses of 32 bits; idle prefixes and
//                bits of REX, up to 15 bytes
//   others       arithmetic that carries flags, string instructions with
//                counts from 0, in both directions, x87
//
// The same for each seed on each CPU with the same features: what it lacks of
// x86-64-v2, v3, AVX512F and AVX512VL is left out. Two runs have the same
// registers at each instruction if the kernel's stack is at the same address
// and the general registers and flags start equal. It does not depend on time,
// identity or RFLAGS.TF: RFLAGS of a SYSCALL, in R11, is overwritten by the
// next instruction. Flags that the architecture leaves undefined are as the CPU
// has them. It needs no file, and changes none of its code.
std::vector<uint8_t> RandomProgram(uint64_t seed);

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_H_
