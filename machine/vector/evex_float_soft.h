#ifndef CLEW_MACHINE_VECTOR_EVEX_FLOAT_SOFT_H_
#define CLEW_MACHINE_VECTOR_EVEX_FLOAT_SOFT_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

// Binary floating point of 32 and 64 bits in integer arithmetic, for what SSE
// has no instruction for. Numbers are their bits, in uint32_t or uint64_t.
// Everything is computed under the rounding, DAZ and FTZ of an MXCSR, to which
// exception flags are added; all exceptions are taken as masked.
//
// Source: Intel SDM vol. 1, "Floating-Point Data Types" and "SSE and SSE2
// Floating-Point Exceptions".

namespace clew::machine::soft {

// Exception flags of MXCSR.
inline constexpr uint32_t kInvalid = 1u << 0;
inline constexpr uint32_t kDenormal = 1u << 1;
inline constexpr uint32_t kDivideByZero = 1u << 2;
inline constexpr uint32_t kOverflow = 1u << 3;
inline constexpr uint32_t kUnderflow = 1u << 4;
inline constexpr uint32_t kInexact = 1u << 5;

// Rounding, as two bits of MXCSR and of immediates have it.
enum class Round : uint8_t { kNearest, kDown, kUp, kTowardsZero };

inline constexpr unsigned kRoundAt = 13;  // in MXCSR

inline Round RoundOf(uint32_t mxcsr) {
  return static_cast<Round>(mxcsr >> kRoundAt & 3);
}
inline uint32_t WithRound(uint32_t mxcsr, Round round) {
  return (mxcsr & ~(3u << kRoundAt)) | static_cast<uint32_t>(round) << kRoundAt;
}
inline bool IsDaz(uint32_t mxcsr) { return (mxcsr & 1u << 6) != 0; }
inline bool IsFtz(uint32_t mxcsr) { return (mxcsr & 1u << 15) != 0; }

template <std::unsigned_integral U>
struct Format {
  static constexpr unsigned kFractionBits = sizeof(U) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(U) == 4 ? 127 : 1023;
  static constexpr U kSign = U{1} << (8 * sizeof(U) - 1);
  static constexpr U kOne = U{kBias} << kFractionBits;
  static constexpr U kInfinity = U{2 * kBias + 1} << kFractionBits;
  static constexpr U kQuiet = U{1} << (kFractionBits - 1);
  static constexpr U kIndefinite = kSign | kInfinity | kQuiet;  // a quiet NaN
};

enum class Kind : uint8_t {
  kZero,
  kFinite,  // and not zero
  kInfinity,
  kQuietNan,
  kSignallingNan
};

struct Number {
  Kind kind = Kind::kZero;
  bool is_negative = false;
  bool is_denormal = false;  // and not taken for zero
  // Of what is finite and not zero: |value| = significand * 2^(exponent - 63),
  // the top bit of the significand being set.
  int exponent = 0;
  uint64_t significand = 0;

  bool is_nan() const {
    return kind == Kind::kQuietNan || kind == Kind::kSignallingNan;
  }
};

template <class U>
U SignOf(U bits) {
  return bits & Format<U>::kSign;
}
template <class U>
U MagnitudeOf(U bits) {
  return bits & ~Format<U>::kSign;
}

// The number, or under DAZ zero in place of one that is denormal.
template <class U>
U AsInput(U bits, uint32_t mxcsr) {
  const bool is_small = MagnitudeOf(bits) < U{1} << Format<U>::kFractionBits;
  return is_small && IsDaz(mxcsr) ? SignOf(bits) : bits;
}

template <class U>
Number Unpack(U bits, uint32_t mxcsr) {
  using F = Format<U>;
  constexpr unsigned kUnused = 63 - F::kFractionBits;
  Number number;
  number.is_negative = SignOf(bits) != 0;
  const U magnitude = MagnitudeOf(AsInput(bits, mxcsr));
  if (magnitude >= F::kInfinity) {
    number.kind = magnitude == F::kInfinity      ? Kind::kInfinity
                  : (magnitude & F::kQuiet) != 0 ? Kind::kQuietNan
                                                 : Kind::kSignallingNan;
  } else if (magnitude >= U{1} << F::kFractionBits) {
    number.kind = Kind::kFinite;
    number.exponent =
        static_cast<int>(magnitude >> F::kFractionBits) - F::kBias;
    number.significand = uint64_t{1} << 63 | uint64_t{magnitude} << kUnused;
  } else if (magnitude != 0) {
    const int zeros = std::countl_zero(uint64_t{magnitude});
    number.kind = Kind::kFinite;
    number.is_denormal = true;
    number.exponent = 1 - F::kBias + static_cast<int>(kUnused) - zeros;
    number.significand = uint64_t{magnitude} << zeros;
  }
  return number;
}

struct Rounded {
  uint64_t value = 0;
  bool is_exact = true;
};

// value / 2^shift as an integer, of a number that is negative or not.
inline Rounded DivideRounded(uint64_t value, unsigned shift, bool is_negative,
                             Round round) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  if (shift == 0) {
    return {value, true};
  }
  const uint64_t kept = shift < 64 ? value >> shift : 0;
  // The rest, in units of 2^-64; of what is below half of one, no more than
  // that it is there.
  const uint64_t rest = shift < 64    ? value << (64 - shift)
                        : shift == 64 ? value
                                      : uint64_t{value != 0};
  if (rest == 0) {
    return {kept, true};
  }
  bool up = false;
  switch (round) {
    case Round::kNearest:
      up = rest > kHalf || (rest == kHalf && (kept & 1) != 0);
      break;
    case Round::kDown:
      up = is_negative;
      break;
    case Round::kUp:
      up = !is_negative;
      break;
    case Round::kTowardsZero:
      break;
  }
  return {kept + uint64_t{up}, false};
}

// What a number beyond the largest one becomes.
template <class U>
U Overflowed(U sign, uint32_t& mxcsr) {
  using F = Format<U>;
  mxcsr |= kOverflow | kInexact;
  const Round round = RoundOf(mxcsr);
  const bool to_infinity = round == Round::kNearest ||
                           round == (sign != 0 ? Round::kDown : Round::kUp);
  return sign | (to_infinity ? F::kInfinity : F::kInfinity - 1);
}

// A finite number, which is not zero, to bits. Whether it is tiny is found
// after rounding: Intel SDM vol. 1, "Numeric Underflow Exception (#U)".
template <class U>
U Pack(const Number& number, uint32_t& mxcsr) {
  using F = Format<U>;
  constexpr unsigned kUnused = 63 - F::kFractionBits;
  constexpr uint64_t kTop = uint64_t{1} << F::kFractionBits;
  const U sign = number.is_negative ? F::kSign : U{0};
  const Round round = RoundOf(mxcsr);
  Rounded rounded =
      DivideRounded(number.significand, kUnused, number.is_negative, round);
  const int exponent = number.exponent + (rounded.value == 2 * kTop ? 1 : 0);
  if (exponent > F::kBias) {
    return Overflowed(sign, mxcsr);
  }
  if (exponent >= 1 - F::kBias) {
    mxcsr |= rounded.is_exact ? 0 : kInexact;
    // The top bit, or the carry out of it, adds one to the exponent.
    const auto below = static_cast<U>(number.exponent + F::kBias - 1);
    return sign + (below << F::kFractionBits) + static_cast<U>(rounded.value);
  }
  if (IsFtz(mxcsr)) {
    mxcsr |= kUnderflow | kInexact;
    return sign;
  }
  const auto missing = static_cast<unsigned>(1 - F::kBias - number.exponent);
  rounded = DivideRounded(number.significand, kUnused + missing,
                          number.is_negative, round);
  mxcsr |= rounded.is_exact ? 0 : kUnderflow | kInexact;
  return sign | static_cast<U>(rounded.value);
}

// The quiet NaN that an operation on a NaN results in.
template <class U>
U Quieted(U nan, uint32_t& mxcsr) {
  mxcsr |= (nan & Format<U>::kQuiet) == 0 ? kInvalid : 0;
  return nan | Format<U>::kQuiet;
}

template <class U>
U Indefinite(uint32_t& mxcsr) {
  mxcsr |= kInvalid;
  return Format<U>::kIndefinite;
}

// To an integer; where that has no such value, the invalid one: all bits are
// set of an unsigned one, the top bit of a signed one.
template <std::integral Int, class U>
Int ToInteger(U bits, Round round, uint32_t& mxcsr) {
  using Limits = std::numeric_limits<Int>;
  constexpr Int kNone = Limits::is_signed ? Limits::min() : Limits::max();
  const Number number = Unpack(bits, mxcsr);
  if (number.kind == Kind::kZero) {
    return 0;
  }
  if (number.kind != Kind::kFinite || number.exponent > 63) {
    mxcsr |= kInvalid;
    return kNone;
  }
  const Rounded rounded = DivideRounded(
      number.significand, static_cast<unsigned>(63 - number.exponent),
      number.is_negative, round);
  // That of Limits::min() is one more than that of Limits::max(), or zero.
  const uint64_t limit =
      number.is_negative ? uint64_t{0} - static_cast<uint64_t>(Limits::min())
                         : static_cast<uint64_t>(Limits::max());
  if (rounded.value > limit) {
    mxcsr |= kInvalid;
    return kNone;
  }
  mxcsr |= rounded.is_exact ? 0 : kInexact;
  return static_cast<Int>(number.is_negative ? 0 - rounded.value
                                             : rounded.value);
}

template <class U, std::integral Int>
U FromInteger(Int value, uint32_t& mxcsr) {
  if (value == 0) {
    return 0;
  }
  Number number;
  number.is_negative = std::is_signed_v<Int> && value < 0;
  const auto bits = static_cast<uint64_t>(value);
  const uint64_t magnitude = number.is_negative ? 0 - bits : bits;
  const int zeros = std::countl_zero(magnitude);
  number.exponent = 63 - zeros;
  number.significand = magnitude << zeros;
  return Pack<U>(number, mxcsr);
}

}  // namespace clew::machine::soft

#endif  // CLEW_MACHINE_VECTOR_EVEX_FLOAT_SOFT_H_
