#ifndef CLEW_MACHINE_VECTOR_X87_OP_H_
#define CLEW_MACHINE_VECTOR_X87_OP_H_

#include <cstdint>

#include "machine/registers.h"

// x87 arithmetic on values: the host's own instruction under the guest's
// control word, so bit-exact in every precision and rounding. Knows nothing of
// the register stack. The host's x87 state is as before afterwards.
//
// All exceptions are taken as masked: the recorder's CPU (QEMU) delivers none.
//
// QEMU 7.2 computes the same, but for: C1 (rounded up) and the denormal flag,
// which it does not set; the last bits of FSIN, FCOS, FSINCOS, FPTAN, FPATAN,
// F2XM1, FYL2X, FYL2XP1, in which CPU models differ too; FPREM1's condition
// codes.

namespace clew::machine {

// Bits of the status word.
inline constexpr uint16_t kX87Invalid = 1u << 0;
inline constexpr uint16_t kX87Exceptions = 0x3f;  // IE DE ZE OE UE PE
inline constexpr uint16_t kX87StackFault = 1u << 6;
inline constexpr uint16_t kX87Summary = 1u << 7;
inline constexpr uint16_t kX87C0 = 1u << 8;
inline constexpr uint16_t kX87C1 = 1u << 9;
inline constexpr uint16_t kX87C2 = 1u << 10;
inline constexpr uint16_t kX87C3 = 1u << 14;
inline constexpr uint16_t kX87Conditions = kX87C0 | kX87C1 | kX87C2 | kX87C3;
inline constexpr uint16_t kX87Busy = 1u << 15;

// In: the control word. Out: `status` is what the one operation raised:
// exceptions and condition codes.
struct X87Env {
  uint16_t control = 0x37f;
  uint16_t status = 0;
};

// a is st(0), b is st(1) or the explicit operand.
using X87Binary = Float80 (*)(const Float80& a, const Float80& b, X87Env& env);
template <class U>
using X87Memory = Float80 (*)(const Float80& a, U bits, X87Env& env);
using X87Unary = Float80 (*)(const Float80& a, X87Env& env);
using X87Constant = Float80 (*)(X87Env& env);
using X87Compare = void (*)(const Float80& a, const Float80& b, X87Env& env);

// FCHS and FABS change the sign bit, FXCH and FLD st(i) move registers: none of
// them is arithmetic, and none is in these lists.
#define CLEW_X87_BINARY_OPS(X)    \
  X(Fadd, "fadd %%st(1), %%st")   \
  X(Fmul, "fmul %%st(1), %%st")   \
  X(Fsub, "fsub %%st(1), %%st")   \
  X(Fsubr, "fsubr %%st(1), %%st") \
  X(Fdiv, "fdiv %%st(1), %%st")   \
  X(Fdivr, "fdivr %%st(1), %%st") \
  X(Fprem, "fprem")               \
  X(Fprem1, "fprem1")             \
  X(Fscale, "fscale")             \
  X(Fpatan, "fpatan")             \
  X(Fyl2x, "fyl2x")               \
  X(Fyl2xp1, "fyl2xp1")

// FSIN, FCOS, FPTAN and FSINCOS set C2 where `a` is out of range, and the
// result then means nothing. FXTRACT, FPTAN and FSINCOS have two results: the
// one that ends in st(0) and, with `Below`, the one under it, of which `status`
// means nothing.
#define CLEW_X87_UNARY_OPS(X)                \
  X(Fsqrt, "fsqrt")                          \
  X(Frndint, "frndint")                      \
  X(F2xm1, "f2xm1")                          \
  X(Fxtract, "fxtract")                      \
  X(FxtractBelow, "fxtract\n\tfxch %%st(1)") \
  X(Fsin, "fsin")                            \
  X(Fcos, "fcos")                            \
  X(Fptan, "fptan")                          \
  X(FptanBelow, "fptan\n\tfxch %%st(1)")     \
  X(Fsincos, "fsincos")                      \
  X(FsincosBelow, "fsincos\n\tfxch %%st(1)")

// With a float32 or float64 in memory. Loading it first would not be the same:
// a signalling NaN would be quiet by then, a denormal reported too early.
#define CLEW_X87_MEMORY_OPS(X) \
  X(FaddMemory, "fadd")        \
  X(FmulMemory, "fmul")        \
  X(FcomMemory, "fcom")        \
  X(FsubMemory, "fsub")        \
  X(FsubrMemory, "fsubr")      \
  X(FdivMemory, "fdiv")        \
  X(FdivrMemory, "fdivr")

#define CLEW_X87_CONSTANTS(X) \
  X(Fld1, "fld1")             \
  X(Fldz, "fldz")             \
  X(Fldpi, "fldpi")           \
  X(Fldl2e, "fldl2e")         \
  X(Fldl2t, "fldl2t")         \
  X(Fldlg2, "fldlg2")         \
  X(Fldln2, "fldln2")

// C0, C2, C3 tell less, unordered, equal.
#define CLEW_X87_COMPARISONS(X) \
  X(Fcom, "fcom %%st(1)")       \
  X(Fucom, "fucom %%st(1)")

#define CLEW_X87_DECLARE(Name, text) \
  Float80 Name(const Float80& a, const Float80& b, X87Env& env);
CLEW_X87_BINARY_OPS(CLEW_X87_DECLARE)
#undef CLEW_X87_DECLARE
#define CLEW_X87_DECLARE(Name, text) \
  Float80 Name(const Float80& a, X87Env& env);
CLEW_X87_UNARY_OPS(CLEW_X87_DECLARE)
#undef CLEW_X87_DECLARE
#define CLEW_X87_DECLARE(Name, text)                          \
  Float80 Name(const Float80& a, uint32_t bits, X87Env& env); \
  Float80 Name(const Float80& a, uint64_t bits, X87Env& env);
CLEW_X87_MEMORY_OPS(CLEW_X87_DECLARE)
#undef CLEW_X87_DECLARE
#define CLEW_X87_DECLARE(Name, text) Float80 Name(X87Env& env);
CLEW_X87_CONSTANTS(CLEW_X87_DECLARE)
#undef CLEW_X87_DECLARE
#define CLEW_X87_DECLARE(Name, text) \
  void Name(const Float80& a, const Float80& b, X87Env& env);
CLEW_X87_COMPARISONS(CLEW_X87_DECLARE)
#undef CLEW_X87_DECLARE

// C0, C2, C3 by class, C1 the sign, of a register that is not empty.
void Fxam(const Float80& a, X87Env& env);

// Conversions from memory formats, and to them: the bits of the memory operand,
// in the low bytes.
Float80 FromFloat32(uint32_t bits, X87Env& env);
Float80 FromFloat64(uint64_t bits, X87Env& env);
Float80 FromInt16(uint16_t bits, X87Env& env);
Float80 FromInt32(uint32_t bits, X87Env& env);
Float80 FromInt64(uint64_t bits, X87Env& env);
Float80 FromBcd(const Float80& packed, X87Env& env);
uint32_t ToFloat32(const Float80& value, X87Env& env);
uint64_t ToFloat64(const Float80& value, X87Env& env);
uint16_t ToInt16(const Float80& value, X87Env& env);
uint32_t ToInt32(const Float80& value, X87Env& env);
uint64_t ToInt64(const Float80& value, X87Env& env);
uint16_t TruncateToInt16(const Float80& value, X87Env& env);
uint32_t TruncateToInt32(const Float80& value, X87Env& env);
uint64_t TruncateToInt64(const Float80& value, X87Env& env);
Float80 ToBcd(const Float80& value, X87Env& env);  // ten bytes, packed

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_X87_OP_H_
