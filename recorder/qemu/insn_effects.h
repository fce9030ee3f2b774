#ifndef CLEW_RECORDER_QEMU_INSN_EFFECTS_H_
#define CLEW_RECORDER_QEMU_INSN_EFFECTS_H_

#include <cstdint>
#include <span>

namespace clew::recorder {

// True if the instruction of 64-bit mode reads or writes memory other than by
// pushing, popping or an address based on RSP: where a thread switch can
// matter. LEA, NOP and prefetches have a memory operand but access nothing.
// Bytes that are not a whole instruction count as an access.
//
// Source: Intel SDM vol. 2, "Opcode Map" and "Instruction Format".
bool AccessesSharedMemory(std::span<const uint8_t> insn);

// Instructions that QEMU carries out otherwise than a CPU, where a program asks
// for it (common/linux/deviations.h): LDMXCSR, FNSTSW.
enum class DeviantInsn : uint8_t { kNone, kLoadMxcsr, kStoreX87Status };
DeviantInsn ClassifyDeviant(std::span<const uint8_t> insn);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_INSN_EFFECTS_H_
