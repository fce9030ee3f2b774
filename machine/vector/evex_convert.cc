#include <cstring>
#include <type_traits>

#include "machine/vector/evex_float.h"
#include "machine/vector/evex_float_soft.h"

namespace clew::machine {
namespace {

// The bits of a float or double.
template <class Float>
using BitsOf =
    std::conditional_t<sizeof(Float) == sizeof(float), uint32_t, uint64_t>;

soft::Round RoundOfConversion(uint32_t mxcsr, bool truncates) {
  return truncates ? soft::Round::kTowardsZero : soft::RoundOf(mxcsr);
}

// The integer in the low element of type Float.
template <class Int, class Float>
uint64_t LowToInteger(const Vec128& src, bool truncates, VecState& state) {
  const auto bits = static_cast<BitsOf<Float>>(src.q[0]);
  return soft::ToInteger<Int>(bits, RoundOfConversion(state.mxcsr, truncates),
                              state.mxcsr);
}

template <class Float, class Int>
void LowFromInteger(Vec128& dst, Int value, VecState& state) {
  const auto bits = soft::FromInteger<BitsOf<Float>>(value, state.mxcsr);
  std::memcpy(dst.q.data(), &bits, sizeof(bits));
}

}  // namespace

#define CLEW_SOFT_TO_INTEGER(Name, mnemonic, Int, Float, truncates)      \
  void Name(Wide& dst, const Wide& src, WideState& state) {              \
    const soft::Round round = RoundOfConversion(state.mxcsr, truncates); \
    MakeElements<Int, BitsOf<Float>>(                                    \
        dst, src, state, [&](BitsOf<Float> bits) {                       \
          return static_cast<Int>(                                       \
              soft::ToInteger<Int>(bits, round, state.mxcsr));           \
        });                                                              \
  }
CLEW_EVEX_TO_INTEGER_OPS(CLEW_SOFT_TO_INTEGER)

#define CLEW_SOFT_FROM_INTEGER(Name, mnemonic, Float, Int)             \
  void Name(Wide& dst, const Wide& src, WideState& state) {            \
    MakeElements<BitsOf<Float>, Int>(dst, src, state, [&](Int value) { \
      return soft::FromInteger<BitsOf<Float>>(value, state.mxcsr);     \
    });                                                                \
  }
CLEW_EVEX_FROM_INTEGER_OPS(CLEW_SOFT_FROM_INTEGER)

#define CLEW_SOFT_TO_GPR(Name, mnemonic, Float, truncates)       \
  uint64_t Name##32(const Vec128& src, VecState& state) {        \
    return LowToInteger<uint32_t, Float>(src, truncates, state); \
  }                                                              \
  uint64_t Name##64(const Vec128& src, VecState& state) {        \
    return LowToInteger<uint64_t, Float>(src, truncates, state); \
  }
CLEW_EVEX_TO_GPR_OPS(CLEW_SOFT_TO_GPR)

#define CLEW_SOFT_FROM_GPR(Name, mnemonic, Float)                       \
  void Name##32(Vec128 & dst, const Vec128& src, VecState& state) {     \
    LowFromInteger<Float>(dst, static_cast<uint32_t>(src.q[0]), state); \
  }                                                                     \
  void Name##64(Vec128 & dst, const Vec128& src, VecState& state) {     \
    LowFromInteger<Float>(dst, src.q[0], state);                        \
  }
CLEW_EVEX_FROM_GPR_OPS(CLEW_SOFT_FROM_GPR)

}  // namespace clew::machine
