#ifndef CLEW_MACHINE_VECTOR_HOST_OP_H_
#define CLEW_MACHINE_VECTOR_HOST_OP_H_

#include <emmintrin.h>

#include "machine/vector/vec_op.h"

// Value functions that are one instruction of the host, which is an x86-64 with
// SSE4.2 like the guest. Only for .cc files of machine/vector.
//
// The MXCSR of the host is the guest's during the instruction and restored
// after it, in one asm statement, so that the compiler can move nothing in
// between. All exceptions are masked: the recorder's CPU (QEMU) delivers none,
// whatever the guest's mask bits say.

namespace clew::machine {

inline constexpr uint32_t kMxcsrFlags = 0x3f;
inline constexpr uint32_t kMxcsrMasks = 0x1f80;
inline constexpr uint32_t kMxcsrControl = 0xe040;  // FTZ, rounding, DAZ

inline __m128i ToHost(const Vec128& value) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(&value));
}

inline void FromHost(__m128i value, Vec128& out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&out), value);
}

// The host's MXCSR for a guest's: its control bits, masked, no flag set.
inline uint32_t HostMxcsr(uint32_t guest) {
  return (guest & kMxcsrControl) | kMxcsrMasks;
}

}  // namespace clew::machine

// Of asm statements that use the x87 or MMX registers.
#define CLEW_X87_CLOBBERS \
  "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc"

// Runs `text` under the MXCSR in [guest], which it leaves with the new flags;
// [host] is scratch.
#define CLEW_UNDER_MXCSR(text)                   \
  "stmxcsr %[host]\n\tldmxcsr %[guest]\n\t" text \
  "\n\tstmxcsr %[guest]\n\tldmxcsr %[host]"

// Name(dst, src, state): `mnemonic src, dst`, which neither reads nor writes
// MXCSR.
#define CLEW_HOST_INTEGER_OP(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState&) {                  \
    __m128i d = ToHost(dst);                                              \
    __asm__(mnemonic " %1, %0" : "+x"(d) : "x"(ToHost(src)) : "cc");      \
    FromHost(d, dst);                                                     \
  }

// The same on an MMX register: the operands are the low halves. The x87 stack
// is empty before and after.
#define CLEW_HOST_MMX_OP(Name, mnemonic, bytes, reads_dst, vex_lanes) \
  void Name(Vec128& dst, const Vec128& src, VecState&) {              \
    __asm__("movq %0, %%mm0\n\t" mnemonic                             \
            " %1, %%mm0\n\tmovq %%mm0, %0\n\t"                        \
            "emms"                                                    \
            : "+m"(dst.q[0])                                          \
            : "m"(src.q[0])                                           \
            : "mm0", CLEW_X87_CLOBBERS);                              \
  }

// As CLEW_HOST_INTEGER_OP, under the guest's MXCSR.
#define CLEW_HOST_FLOAT_OP(Name, mnemonic, bytes, reads_dst, vex_lanes)    \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {             \
    __m128i d = ToHost(dst);                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                               \
    uint32_t host;                                                         \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], %[d]")              \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "x"(ToHost(src)));                              \
    state.mxcsr |= guest & kMxcsrFlags;                                    \
    FromHost(d, dst);                                                      \
  }

#endif  // CLEW_MACHINE_VECTOR_HOST_OP_H_
