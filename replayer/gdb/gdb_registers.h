#ifndef CLEW_REPLAYER_GDB_GDB_REGISTERS_H_
#define CLEW_REPLAYER_GDB_GDB_REGISTERS_H_

#include <cstddef>
#include <string>

#include "common/x86/features.h"
#include "machine/registers.h"

namespace clew::replayer::gdb {

// The registers of a thread as gdb numbers them: the features core, sse, linux,
// segments and avx of an x86-64 GNU/Linux target, and avx512 where the recorded
// CPU has AVX-512. `cpu` is what that CPU has. The upper halves of one without
// AVX are zero.
//
// Source: gdb 13
// gdb/features/i386/64bit-{core,sse,linux,segments,avx,avx512}.xml and
// amd64-linux's target description.

// Returns the target description to give to gdb.
std::string TargetXml(x86::FeatureSet cpu);

size_t RegisterCount(x86::FeatureSet cpu);

// Returns register `number` in hexadecimal, in memory order; "xx..." for one
// that is not recorded (segment selectors are constants of the kernel, orig_rax
// and the x87 instruction and operand pointers are not kept). REQUIRES: number
// < RegisterCount() of a CPU with AVX-512.
std::string RegisterHex(const machine::Registers& registers, size_t number);

// Returns all registers in order, as the g packet has them.
std::string AllRegistersHex(const machine::Registers& registers,
                            x86::FeatureSet cpu);

// Numbers that stop replies carry along.
inline constexpr size_t kRegisterRbp = 6;
inline constexpr size_t kRegisterRsp = 7;
inline constexpr size_t kRegisterRip = 16;

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_GDB_REGISTERS_H_
