#ifndef CLEW_MACHINE_INSN_H_
#define CLEW_MACHINE_INSN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/x86/opcode.h"
#include "machine/registers.h"

namespace clew::machine {

// A decoded instruction in the form that handlers read: small, plain, the same
// for all value domains. decode.cc makes it.

enum class OperandKind : uint8_t {
  kNone,
  kReg,    // general register; Operand::reg is its byte offset in gpr
  kMem,    // the instruction's one memory operand, Insn::mem
  kImm,    // Insn::imm, already sign-extended
  kVec,    // vector register of 16, 32 or 64 bytes; Operand::reg is 0..31
  kMask,   // opmask register; Operand::reg is 0..7
  kX87,    // st(i); Operand::reg is i
  kMmx,    // Operand::reg is 0..7
  kOther,  // segment, control, debug registers: only moved or refused
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t size_bytes = 0;
  // kReg: byte offset into Registers::gpr: 8 * number, + 1 for ah, ch, dh, bh.
  uint8_t reg = 0;

  bool is_mem() const { return kind == OperandKind::kMem; }
  bool is_reg() const { return kind == OperandKind::kReg; }
  bool is_vec() const { return kind == OperandKind::kVec; }
  bool is_mask() const { return kind == OperandKind::kMask; }
  bool is_mmx() const { return kind == OperandKind::kMmx; }
  bool is_imm() const { return kind == OperandKind::kImm; }
};

// base + (index << shift) + disp, plus a segment base. RIP-relative addresses
// are folded into disp. Source of VSIB: Intel SDM vol. 2, "Vector SIB (VSIB)
// Memory Addressing".
struct MemOperand {
  static constexpr uint8_t kNoReg = 0xff;
  int64_t disp = 0;
  uint8_t base = kNoReg;  // clew::Gpr
  uint8_t index = kNoReg;
  // In place of `index`, a vector register: an index for each element (VSIB).
  uint8_t vector_index = kNoReg;
  uint8_t shift = 0;
  x86::Segment segment = x86::Segment::kNone;
};

// Rounding that EVEX tells of instead of MXCSR; with it, or where it says so
// itself (SAE), no exception is raised or noted. Source: Intel SDM vol. 1,
// "Static Rounding Support in EVEX".
enum class Rounding : uint8_t {
  kByMxcsr,
  kNearest,
  kDown,
  kUp,
  kTowardsZero,
  kSuppressExceptions,  // rounds as MXCSR says
};

struct Insn {
  uint64_t ip = 0;
  int64_t imm = 0;
  MemOperand mem;
  std::array<Operand, 4> op;  // in Intel order: destination first
  // Only what handlers are selected by:
  std::array<uint8_t, 3> opcode = {};  // 0x0f 0x38 .. as in the encoding
  uint8_t modrm = 0;
  uint8_t length = 0;
  uint8_t op_count = 0;
  uint8_t operand_size_bytes = 0;  // 2, 4, 8 by 66 and REX.W, not 1
  // VEX: 16 or 32, as VEX.L says; EVEX: 16, 32 or 64; else 0.
  uint8_t vector_bytes = 0;
  uint8_t opmask = 0;  // EVEX.aaa: the writemask; 0: none
  Rounding rounding = Rounding::kByMxcsr;
  bool evex : 1 = false;
  bool zeroing : 1 = false;    // EVEX.z: what is not selected becomes zero
  bool broadcast : 1 = false;  // memory is one element, for all of them
  bool lock : 1 = false;
  bool rep : 1 = false;     // F3
  bool repne : 1 = false;   // F2
  bool opsize : 1 = false;  // 66
  bool addr32 : 1 = false;  // 67
  bool rex_w : 1 = false;
  bool drains : 1 = false;  // waits until no store of the thread waits

  uint64_t next_ip() const { return ip + length; }
};

// How an instruction uses vector registers: what its handler is a template
// over.
struct VecForm {
  // Encoded with VEX: it clears the lanes above its own instead of keeping
  // them, memory need not be aligned, and an operation that reads its
  // destination reads a first source in its place.
  bool vex = false;
  unsigned lanes = 1;

  constexpr unsigned size_bytes() const { return lanes * kLaneBytes; }
  // Indices into Insn::op, of an operation with two sources.
  constexpr unsigned first_source() const { return vex ? 1 : 0; }
  constexpr unsigned second_source() const { return vex ? 2 : 1; }
};
inline constexpr VecForm kSse = {false, 1};
inline constexpr VecForm kVex128 = {true, 1};
inline constexpr VecForm kVex256 = {true, 2};
inline constexpr VecForm kEvex512 = {true, 4};

template <class D>
class Cpu;

// What executes one decoded instruction in domain D.
template <class D>
using Handler = void (*)(Cpu<D>& cpu, const Insn& insn);

// Chooses the handler for a form of a mnemonic (by opcode, operand kinds and
// sizes); nullptr: that form is not supported.
template <class D>
using Selector = Handler<D> (*)(const Insn& insn);

// Mnemonic, as Capstone spells it without prefixes ("add", "pshufb"), to
// selector. "movsd" and "cmpsd" are both string and SSE instructions: the
// decoder calls the string ones "movsd$string" and "cmpsd$string".
template <class D>
using HandlerTable = std::unordered_map<std::string_view, Selector<D>>;

// How to add a family (machine/insn/<family>.cc); machine/insn/logic.cc is the
// model:
//
// 1. Handlers are function templates over the domain:
//      template <class D> void Pxor(Cpu<D>& cpu, const Insn& insn) {
//        const Vec128 b = cpu.ReadVec(insn, insn.op[1]);    // may fault
//        const Vec128 a = cpu.ReadVec(insn, insn.op[0]);
//        if (cpu.faulted()) { return; }                      // precise faults
//        cpu.WriteVec(insn, insn.op[0], Xor(a, b));
//      }
//    After a fault nothing may change: return once cpu.faulted(), write memory
//    before registers and flags. Control flow calls cpu.Jump.
// 2. Selectors choose by form:
//      template <class D> Handler<D> SelectPxor(const Insn& insn) {
//        return insn.op[0].is_vec() ? &Pxor<D> : nullptr;
//      }
// 3. template <class D> void RegisterFoo(HandlerTable<D>& table) {
//      table["pxor"] = SelectPxor<D>; ... }
//    declared in machine/insn/families.h, instantiated at the end of the file
//    for both domains (CLEW_INSTANTIATE_FAMILY), called by RegisterAll there.
// 4. Forms for tests/machine/.

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_H_
