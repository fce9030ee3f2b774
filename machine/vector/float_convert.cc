#include "machine/vector/float.h"
#include "machine/vector/host_op.h"

namespace clew::machine {

// Name(dst, src, state): an integer of type Int in src.q[0] to floating point.
#define CLEW_HOST_FROM_GPR(Name, mnemonic, Int)                            \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {             \
    __m128i d = ToHost(dst);                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                               \
    uint32_t host;                                                         \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], %[d]")              \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "r"(static_cast<Int>(src.q[0])));               \
    state.mxcsr |= guest & kMxcsrFlags;                                    \
    FromHost(d, dst);                                                      \
  }

CLEW_HOST_FROM_GPR(Cvtsi2ss32, "cvtsi2ssl", uint32_t)
CLEW_HOST_FROM_GPR(Cvtsi2ss64, "cvtsi2ssq", uint64_t)
CLEW_HOST_FROM_GPR(Cvtsi2sd32, "cvtsi2sdl", uint32_t)
CLEW_HOST_FROM_GPR(Cvtsi2sd64, "cvtsi2sdq", uint64_t)

// Name(src, state): the lowest element to an integer of type Int.
#define CLEW_HOST_TO_GPR(Name, mnemonic, Int)                               \
  uint64_t Name(const Vec128& src, VecState& state) {                       \
    Int d;                                                                  \
    uint32_t guest = HostMxcsr(state.mxcsr);                                \
    uint32_t host;                                                          \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], %[d]")               \
                     : [d] "=&r"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "x"(ToHost(src)));                               \
    state.mxcsr |= guest & kMxcsrFlags;                                     \
    return d;                                                               \
  }

CLEW_HOST_TO_GPR(Cvtss2si32, "cvtss2si", uint32_t)
CLEW_HOST_TO_GPR(Cvtss2si64, "cvtss2si", uint64_t)
CLEW_HOST_TO_GPR(Cvtsd2si32, "cvtsd2si", uint32_t)
CLEW_HOST_TO_GPR(Cvtsd2si64, "cvtsd2si", uint64_t)
CLEW_HOST_TO_GPR(Cvttss2si32, "cvttss2si", uint32_t)
CLEW_HOST_TO_GPR(Cvttss2si64, "cvttss2si", uint64_t)
CLEW_HOST_TO_GPR(Cvttsd2si32, "cvttsd2si", uint32_t)
CLEW_HOST_TO_GPR(Cvttsd2si64, "cvttsd2si", uint64_t)

// Name(dst, src, state): compares the lowest elements. The host's flags come
// out as they are (SETcc would lose the case of a NaN).
#define CLEW_HOST_TO_FLAGS(Name, mnemonic)                                    \
  uint64_t Name(const Vec128& dst, const Vec128& src, VecState& state) {      \
    bool zero;                                                                \
    bool parity;                                                              \
    bool carry;                                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                                  \
    uint32_t host;                                                            \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], %[d]")                 \
                     : "=@ccz"(zero), "=@ccp"(parity),                        \
                       "=@ccc"(carry), [guest] "+m"(guest), [host] "=m"(host) \
                     : [d] "x"(ToHost(dst)), [s] "x"(ToHost(src)));           \
    state.mxcsr |= guest & kMxcsrFlags;                                       \
    return (zero ? kFlagZero : 0) | (parity ? kFlagParity : 0) |              \
           (carry ? kFlagCarry : 0);                                          \
  }

CLEW_HOST_TO_FLAGS(Ucomiss, "ucomiss")
CLEW_HOST_TO_FLAGS(Ucomisd, "ucomisd")
CLEW_HOST_TO_FLAGS(Comiss, "comiss")
CLEW_HOST_TO_FLAGS(Comisd, "comisd")

// Each is two elements of an instruction on four or two, the others zero, which
// raise nothing.
namespace mmx {

void Cvtpi2ps(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 result;
  Cvtdq2ps(result, Vec128{{src.q[0], 0}}, state);
  dst.q[0] = result.q[0];
}

void Cvtpi2pd(Vec128& dst, const Vec128& src, VecState& state) {
  Cvtdq2pd(dst, src, state);
}

void Cvtps2pi(Vec128& dst, const Vec128& src, VecState& state) {
  Cvtps2dq(dst, Vec128{{src.q[0], 0}}, state);
}

void Cvttps2pi(Vec128& dst, const Vec128& src, VecState& state) {
  Cvttps2dq(dst, Vec128{{src.q[0], 0}}, state);
}

void Cvtpd2pi(Vec128& dst, const Vec128& src, VecState& state) {
  Cvtpd2dq(dst, src, state);
}

void Cvttpd2pi(Vec128& dst, const Vec128& src, VecState& state) {
  Cvttpd2dq(dst, src, state);
}

}  // namespace mmx

}  // namespace clew::machine
