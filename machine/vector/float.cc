#include "machine/vector/float.h"

#include <utility>

#include "machine/vector/host_op.h"

namespace clew::machine {

CLEW_VECTOR_FLOAT_OPS(CLEW_HOST_FLOAT_OP)

namespace {

// One host instruction for each value of an immediate, chosen at run time.
#define CLEW_HOST_FLOAT_IMM_OP(Name, mnemonic)                             \
  template <int kImm>                                                      \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {             \
    __m128i d = ToHost(dst);                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                               \
    uint32_t host;                                                         \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[imm], %[s], %[d]")      \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "x"(ToHost(src)), [imm] "i"(kImm));             \
    state.mxcsr |= guest & kMxcsrFlags;                                    \
    FromHost(d, dst);                                                      \
  }

CLEW_HOST_FLOAT_IMM_OP(CmppsImm, "cmpps")
CLEW_HOST_FLOAT_IMM_OP(CmppdImm, "cmppd")
CLEW_HOST_FLOAT_IMM_OP(CmpssImm, "cmpss")
CLEW_HOST_FLOAT_IMM_OP(CmpsdImm, "cmpsd")
CLEW_HOST_FLOAT_IMM_OP(RoundpsImm, "roundps")
CLEW_HOST_FLOAT_IMM_OP(RoundpdImm, "roundpd")
CLEW_HOST_FLOAT_IMM_OP(RoundssImm, "roundss")
CLEW_HOST_FLOAT_IMM_OP(RoundsdImm, "roundsd")
CLEW_HOST_FLOAT_IMM_OP(DppsImm, "dpps")
CLEW_HOST_FLOAT_IMM_OP(DppdImm, "dppd")

// The immediates that differ in effect: three bits of a comparison (SDM vol. 2,
// CMPPS, legacy encoding), four of a rounding.
#define CLEW_BY_IMM(Name, bits)                              \
  [&]<int... kImms>(std::integer_sequence<int, kImms...>) {  \
    static constexpr VecOp kOps[] = {Name<kImms>...};        \
    kOps[state.imm & ((1u << (bits)) - 1)](dst, src, state); \
  }(std::make_integer_sequence<int, 1 << (bits)>())

// Runs `op` and forgets the flags it raised.
void WithoutFlags(VecOp op, Vec128& dst, const Vec128& src, VecState& state) {
  const uint32_t before = state.mxcsr;
  op(dst, src, state);
  state.mxcsr = before;
}

constexpr uint64_t kFourOnes = 0x3f8000003f800000;  // 1.0f, 1.0f

void Reciprocal(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 result = {{kFourOnes, kFourOnes}};
  WithoutFlags(Divps, result, src, state);
  dst = result;
}

void ReciprocalRoot(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 root;
  WithoutFlags(Sqrtps, root, src, state);
  Reciprocal(dst, root, state);
}

// The lowest element of op(src) into dst. Other elements of src are not looked
// at.
void LowestElement(VecOp op, Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 result;
  op(result, src, state);
  dst.q[0] = (dst.q[0] & ~0xffffffffull) | (result.q[0] & 0xffffffffull);
}

}  // namespace

void Cmpps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmppsImm, 3);
}

void Cmppd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmppdImm, 3);
}

void Cmpss(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmpssImm, 3);
}

void Cmpsd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmpsdImm, 3);
}

void Roundps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundpsImm, 4);
}

void Roundpd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundpdImm, 4);
}

void Roundss(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundssImm, 4);
}

void Roundsd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundsdImm, 4);
}

void Dpps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(DppsImm, 8);
}

void Dppd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(DppdImm, 8);
}

void Rcpps(Vec128& dst, const Vec128& src, VecState& state) {
  Reciprocal(dst, src, state);
}

void Rcpss(Vec128& dst, const Vec128& src, VecState& state) {
  LowestElement(Reciprocal, dst, src, state);
}

void Rsqrtps(Vec128& dst, const Vec128& src, VecState& state) {
  ReciprocalRoot(dst, src, state);
}

void Rsqrtss(Vec128& dst, const Vec128& src, VecState& state) {
  LowestElement(ReciprocalRoot, dst, src, state);
}

}  // namespace clew::machine
