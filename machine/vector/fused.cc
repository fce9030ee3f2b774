#include "machine/vector/fused.h"

#include "machine/vector/host_op.h"

namespace clew::machine {

#define CLEW_HOST_FUSED_OP(Name, mnemonic, bytes, vex_lanes)                \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {              \
    __m128i d = ToHost(dst);                                                \
    uint32_t guest = HostMxcsr(state.mxcsr);                                \
    uint32_t host;                                                          \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], %[t], %[d]")         \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host)  \
                     : [s] "x"(ToHost(src)), [t] "x"(ToHost(state.third))); \
    state.mxcsr |= guest & kMxcsrFlags;                                     \
    FromHost(d, dst);                                                       \
  }

CLEW_VECTOR_FUSED_OPS(CLEW_HOST_FUSED_OP)

void Vcvtph2ps(Vec128& dst, const Vec128& src, VecState& state) {
  __m128i d;
  uint32_t guest = HostMxcsr(state.mxcsr);
  uint32_t host;
  __asm__ volatile(CLEW_UNDER_MXCSR("vcvtph2ps %[s], %[d]")
                   : [d] "=x"(d), [guest] "+m"(guest), [host] "=m"(host)
                   : [s] "x"(ToHost(src)));
  state.mxcsr |= guest & kMxcsrFlags;
  FromHost(d, dst);
}

namespace {

// By MXCSR, with its own rounding.
constexpr int kRoundByMxcsr = 4;
constexpr unsigned kMxcsrRoundingShift = 13;
constexpr uint32_t kMxcsrRounding = 3u << kMxcsrRoundingShift;

}  // namespace

// The immediate's rounding is put into MXCSR: both have the same two bits.
void Vcvtps2ph(Vec128& dst, const Vec128& src, VecState& state) {
  __m128i d;
  uint32_t guest = HostMxcsr(state.mxcsr);
  if ((state.imm & kRoundByMxcsr) == 0) {
    guest = (guest & ~kMxcsrRounding) | uint32_t{state.imm & 3u}
                                            << kMxcsrRoundingShift;
  }
  uint32_t host;
  __asm__ volatile(CLEW_UNDER_MXCSR("vcvtps2ph %[imm], %[s], %[d]")
                   : [d] "=x"(d), [guest] "+m"(guest), [host] "=m"(host)
                   : [s] "x"(ToHost(src)), [imm] "i"(kRoundByMxcsr));
  state.mxcsr |= guest & kMxcsrFlags;
  FromHost(d, dst);
}

}  // namespace clew::machine
