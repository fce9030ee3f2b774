#ifndef CLEW_TESTS_MACHINE_VECTOR_NATIVE_IMM_H_
#define CLEW_TESTS_MACHINE_VECTOR_NATIVE_IMM_H_

#include <emmintrin.h>

#include <array>
#include <utility>

#include "common/digest.h"
#include "machine/vector/vec_op.h"

// The CPU as oracle for instructions with an immediate byte: all 256 of them.

namespace clew::machine {

using NativeOp = Vec128 (*)(const Vec128& dst, const Vec128& src);

// Defines `const std::array<NativeOp, 256> k<Name>`, indexed by the immediate.
#define CLEW_NATIVE_IMM(Name, mnemonic, operands)                              \
  template <int kImm>                                                          \
  Vec128 Native##Name(const Vec128& dst, [[maybe_unused]] const Vec128& src) { \
    auto d = std::bit_cast<__m128i>(dst);                                      \
    __asm__(mnemonic " %[imm], " operands                                      \
            : [d] "+x"(d)                                                      \
            : [s] "x"(std::bit_cast<__m128i>(src)), [imm] "i"(kImm));          \
    return std::bit_cast<Vec128>(d);                                           \
  }                                                                            \
  const std::array<NativeOp, 256> k##Name =                                    \
      []<int... kImms>(std::integer_sequence<int, kImms...>) {                 \
        return std::array<NativeOp, 256>{Native##Name<kImms>...};              \
      }(std::make_integer_sequence<int, 256>());

// Any bits, but often bytes that sit on a boundary.
inline Vec128 AnyVector(Random& random) {
  constexpr std::array<uint8_t, 6> kEdges = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
  const uint64_t edges_in_eight = random.Below(9);
  Elements<uint8_t> bytes;
  for (auto& byte : bytes) {
    byte = random.Below(8) < edges_in_eight
               ? kEdges[random.Below(kEdges.size())]
               : static_cast<uint8_t>(random.Next());
  }
  return FromElements<uint8_t>(bytes);
}

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_NATIVE_IMM_H_
