#ifndef CLEW_RECORDER_TRACER_RUNTIME_CODE_COPY_INSN_H_
#define CLEW_RECORDER_TRACER_RUNTIME_CODE_COPY_INSN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "recorder/tracer/runtime/code/arena.h"
#include "recorder/tracer/runtime/code/encode.h"

namespace clew::tracer {

// An instruction of the program.
struct Insn {
  uint64_t addr = 0;
  const uint8_t* bytes = nullptr;
  x86::Layout layout;
  x86::Branch branch;

  uint64_t next() const { return addr + layout.length; }
  std::span<const uint8_t> all() const { return {bytes, layout.length}; }
  size_t modrm_at() const { return layout.opcode.bytes; }
  // Of an operand relative to RIP.
  size_t displacement_at() const { return modrm_at() + 1; }
  uint64_t operand() const {
    const auto displacement = static_cast<uint64_t>(
        x86::SignedNumber({bytes + displacement_at(), 4}).value_or(0));
    const uint64_t operand = next() + displacement;
    return layout.opcode.prefixes.address_size ? operand & 0xffffffff : operand;
  }
  uint64_t target() const {
    return next() + static_cast<uint64_t>(branch.displacement);
  }
};

// Returns what is at `addr`, of which what is before `end` can be read. Its
// branch is known if its layout is whole.
Insn ReadInsn(uint64_t addr, uint64_t end);
// Returns that of which `bytes` were read at `addr`.
Insn ReadInsn(uint64_t addr, std::span<const uint8_t> bytes);

// Writes a copy that does the same. Returns the register that it uses besides,
// whose value is in the state then. REQUIRES: it is none that transfers
// control.
Register CopyInsn(Code& code, const Insn& insn);

// Writes a copy of a conditional branch. Returns its displacement, a Word,
// which is to lead to the taken side.
uint8_t* CopyConditional(Code& code, const Insn& insn);

// Loads the operand of an indirect jump or call to RCX.
void LoadTarget(Code& code, const Insn& insn);
// Loads the address that RET pops to RCX, and pops it.
void PopTarget(Code& code, const Insn& insn);
// Pushes a return address.
void PushAddress(Arena& arena, uint64_t value);

bool IsSyscall(const Insn& insn);
// INT3, INT and INT1, which can be copied: they return behind themselves.
bool IsTrap(const Insn& insn);
// Neither copied nor replaced.
bool IsUnsupported(const Insn& insn);
// Its results come from elsewhere: they are told, where inputs are.
bool IsInput(const Insn& insn);
// What the recorder steps over, in leaps: those, and what does not depend on
// registers and memory alone, or tells the recorder something.
bool IsStepped(const Insn& insn);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_CODE_COPY_INSN_H_
