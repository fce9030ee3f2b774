#ifndef CLEW_MACHINE_VECTOR_VEC_OP_H_
#define CLEW_MACHINE_VECTOR_VEC_OP_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "machine/registers.h"

namespace clew::machine {

// What a vector operation sees beside its two operands.
struct VecState {
  uint32_t mxcsr = 0x1f80;  // exception flags are added, the rest is read
  uint8_t imm = 0;
  bool is_of_qemu = true;  // Registers::is_of_qemu
  // A third source: the mask of a variable blend, the second of the three
  // operands of a fused multiplication and addition.
  Vec128 third;
};

// The three shapes of SSE value functions. Each is a total function of its
// arguments: no memory, no registers, any bits are a legal input.
//
// dst = op(dst, src). An operation with one operand ignores dst, a scalar one
// keeps dst's upper elements. Where the source is narrower than 16 bytes
// (memory, or a general register) it is in the low bits of src, the rest is
// zero.
using VecOp = void (*)(Vec128& dst, const Vec128& src, VecState& state);
// A general register = op(src); what a 32-bit result leaves above is zero.
using VecToGprOp = uint64_t (*)(const Vec128& src, VecState& state);
// Arithmetic flags = op(dst, src); all of kFlagsArithmetic is replaced.
using VecToFlagsOp = uint64_t (*)(const Vec128& dst, const Vec128& src,
                                  VecState& state);

// 128 bits seen as elements of U, least significant first.
template <class U>
using Elements = std::array<U, 16 / sizeof(U)>;

template <class U>
inline constexpr unsigned kBitsOf = 8 * sizeof(U);

template <class U>
Elements<U> ElementsOf(const Vec128& value) {
  return std::bit_cast<Elements<U>>(value);
}

template <class U>
Vec128 FromElements(const Elements<U>& elements) {
  return std::bit_cast<Vec128>(elements);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_VEC_OP_H_
