#include "machine/vector/evex_float.h"

#include <array>
#include <cstring>

#include "machine/vector/evex_float_soft.h"
#include "machine/vector/float.h"
#include "machine/vector/host_op.h"

namespace clew::machine {
namespace {

using soft::Format;
using soft::Kind;
using soft::Number;
using soft::Unpack;

// An element of each source. Where there is one source, it is `last`; `middle`
// is there of three.
template <class U>
struct FloatSources {
  U first;
  U middle;
  U last;
};

// Of this many elements, dst = kOp<U>(sources, state).
template <class U, U (*kOp)(const FloatSources<U>&, WideState&)>
void EachFloat(Wide& dst, const Wide& src, WideState& state, size_t count) {
  auto to = ElementsOf<U>(dst);
  const auto middle = ElementsOf<U>(state.third);
  const auto last = ElementsOf<U>(src);
  for (size_t i = 0; i < count; ++i) {
    if ((state.selected >> i & 1) != 0) {
      to[i] = kOp({to[i], middle[i], last[i]}, state);
    }
  }
  dst = FromElements<U>(to);
}

// The same of the lowest element. The others are those of the first source that
// is no destination too.
template <class U, U (*kOp)(const FloatSources<U>&, WideState&),
          unsigned kSources>
void LowFloat(Wide& dst, const Wide& src, WideState& state) {
  EachFloat<U, kOp>(dst, src, state, 1);
  if constexpr (kSources == 3) {
    auto elements = ElementsOf<U>(state.third);
    elements[0] = ElementsOf<U>(dst)[0];
    dst = FromElements<U>(elements);
  }
}

// An exponent as a number; exact.
template <class U>
U FromExponent(int exponent) {
  if constexpr (sizeof(U) == sizeof(float)) {
    return std::bit_cast<U>(static_cast<float>(exponent));
  } else {
    return std::bit_cast<U>(static_cast<double>(exponent));
  }
}

template <class U>
U Vgetexp(const FloatSources<U>& sources, WideState& state) {
  const Number number = Unpack(sources.last, state.mxcsr);
  switch (number.kind) {
    case Kind::kZero:
      return Format<U>::kSign | Format<U>::kInfinity;
    case Kind::kInfinity:
      return Format<U>::kInfinity;
    case Kind::kFinite:
      state.mxcsr |= number.is_denormal ? soft::kDenormal : 0;
      return FromExponent<U>(number.exponent);
    default:
      return soft::Quieted(sources.last, state.mxcsr);
  }
}

// The exponent of a mantissa, 0 or -1. The interval, of two bits: [1, 2);
// [1/2, 2), which leaves an even exponent; [1/2, 1); [3/4, 3/2).
int MantissaExponent(const Number& number, unsigned interval) {
  const bool is_upper_half = (number.significand >> 62 & 1) != 0;
  switch (interval) {
    case 0:
      return 0;
    case 1:
      return number.exponent % 2 != 0 ? -1 : 0;
    case 2:
      return -1;
    default:
      return is_upper_half ? -1 : 0;
  }
}

template <class U>
U Vgetmant(const FloatSources<U>& sources, WideState& state) {
  constexpr uint8_t kPositive = 1u << 2;      // the result is
  constexpr uint8_t kNoneNegative = 1u << 3;  // the source may be
  Number number = Unpack(sources.last, state.mxcsr);
  if (number.is_nan()) {
    return soft::Quieted(sources.last, state.mxcsr);
  }
  if (number.kind != Kind::kZero && number.is_negative &&
      (state.imm & kNoneNegative) != 0) {
    return soft::Indefinite<U>(state.mxcsr);
  }
  number.is_negative &= (state.imm & kPositive) == 0;
  if (number.kind != Kind::kFinite) {
    return (number.is_negative ? Format<U>::kSign : U{0}) | Format<U>::kOne;
  }
  state.mxcsr |= number.is_denormal ? soft::kDenormal : 0;
  number.exponent = MantissaExponent(number, state.imm & 3);
  return soft::Pack<U>(number, state.mxcsr);
}

// The immediate of VRNDSCALE and VREDUCE. Bits 7:4 are the number of binary
// digits behind the point that stay; bits 1:0 the rounding, unless bit 2 says
// that it is MXCSR's.
soft::Round RoundToScale(const WideState& state) {
  return (state.imm & 4) != 0 ? soft::RoundOf(state.mxcsr)
                              : static_cast<soft::Round>(state.imm & 3);
}
uint32_t InexactOf(const WideState& state) {
  constexpr uint8_t kSuppresses = 1u << 3;
  return (state.imm & kSuppresses) != 0 ? 0 : soft::kInexact;
}

template <class U>
struct Scaled {
  U bits;
  bool is_exact;
};

// What is finite, rounded so.
template <class U>
Scaled<U> ToScale(U bits, const Number& number, const WideState& state) {
  const int digits = state.imm >> 4;
  const int shift = 63 - number.exponent - digits;
  if (shift <= 0) {
    return {bits, true};
  }
  const soft::Rounded rounded =
      soft::DivideRounded(number.significand, static_cast<unsigned>(shift),
                          number.is_negative, RoundToScale(state));
  if (rounded.value == 0) {
    return {soft::SignOf(bits), rounded.is_exact};
  }
  Number result = number;
  const int zeros = std::countl_zero(rounded.value);
  result.exponent = 63 - zeros - digits;
  result.significand = rounded.value << zeros;
  uint32_t unused = 0;  // it has no more digits than the source, and is normal
  return {soft::Pack<U>(result, unused), rounded.is_exact};
}

template <class U>
U Vrndscale(const FloatSources<U>& sources, WideState& state) {
  const Number number = Unpack(sources.last, state.mxcsr);
  if (number.is_nan()) {
    return soft::Quieted(sources.last, state.mxcsr);
  }
  if (number.kind == Kind::kInfinity) {
    return sources.last;
  }
  const Scaled<U> scaled = ToScale(sources.last, number, state);
  state.mxcsr |= scaled.is_exact ? 0 : InexactOf(state);
  return scaled.bits;
}

// The source less what VRNDSCALE makes of it, by the host. That raises nothing
// but that the difference is inexact, which it is where the source is so small
// that it has digits beyond those of 1.
template <class U>
U Vreduce(const FloatSources<U>& sources, WideState& state) {
  const Number number = Unpack(sources.last, state.mxcsr);
  if (number.is_nan()) {
    return soft::Quieted(sources.last, state.mxcsr);
  }
  if (number.kind == Kind::kInfinity) {
    return 0;
  }
  const Scaled<U> scaled = ToScale(sources.last, number, state);
  VecState of_host;
  of_host.mxcsr =
      soft::WithRound(state.mxcsr & ~kMxcsrFlags, RoundToScale(state));
  Vec128 difference = {{sources.last, 0}};
  (sizeof(U) == 4 ? Subss : Subsd)(difference, {{scaled.bits, 0}}, of_host);
  state.mxcsr |= of_host.mxcsr & InexactOf(state);
  return static_cast<U>(difference.q[0]);
}

// The integer below a finite number, no further from zero than makes a
// difference to an exponent.
int FloorOf(const Number& number) {
  constexpr int kMost = 1 << 16;
  if (number.exponent >= 16) {
    return number.is_negative ? -kMost : kMost;
  }
  const auto magnitude = static_cast<int>(
      soft::DivideRounded(number.significand,
                          static_cast<unsigned>(63 - number.exponent),
                          number.is_negative, soft::Round::kDown)
          .value);
  return number.is_negative ? -magnitude : magnitude;
}

template <class U>
U Vscalef(const FloatSources<U>& sources, WideState& state) {
  Number number = Unpack(sources.first, state.mxcsr);
  const Number power = Unpack(sources.last, state.mxcsr);
  const U of_infinity = power.is_negative ? U{0} : Format<U>::kInfinity;
  if (number.kind == Kind::kQuietNan && power.kind == Kind::kInfinity) {
    return of_infinity;
  }
  if (number.is_nan() || power.is_nan()) {
    const bool signals = number.kind == Kind::kSignallingNan ||
                         power.kind == Kind::kSignallingNan;
    state.mxcsr |= signals ? soft::kInvalid : 0;
    return (number.is_nan() ? sources.first : sources.last) | Format<U>::kQuiet;
  }
  state.mxcsr |= number.is_denormal ? soft::kDenormal : 0;
  if (power.kind == Kind::kInfinity) {
    const Kind opposite = power.is_negative ? Kind::kInfinity : Kind::kZero;
    return number.kind == opposite ? soft::Indefinite<U>(state.mxcsr)
                                   : soft::SignOf(sources.first) | of_infinity;
  }
  if (number.kind != Kind::kFinite) {
    return soft::AsInput(sources.first, state.mxcsr);
  }
  number.exponent += FloorOf(power);
  return soft::Pack<U>(number, state.mxcsr);
}

// Whether a is less than b, of numbers or of their magnitudes. Of those of one
// magnitude the negative one is less.
template <class U>
bool IsLess(U a, U b, bool by_magnitude) {
  const bool is_negative = soft::SignOf(a) != 0;
  const U magnitude_a = soft::MagnitudeOf(a);
  const U magnitude_b = soft::MagnitudeOf(b);
  if (by_magnitude && magnitude_a != magnitude_b) {
    return magnitude_a < magnitude_b;
  }
  if (soft::SignOf(a) != soft::SignOf(b)) {
    return is_negative;
  }
  return is_negative ? magnitude_b < magnitude_a : magnitude_a < magnitude_b;
}

// Bits 1:0 of the immediate: the less, the greater, the less and the greater by
// magnitude; bits 3:2: the sign is that of the first source, as chosen, clear,
// set. A quiet NaN gives way to a number.
template <class U>
U Vrange(const FloatSources<U>& sources, WideState& state) {
  const Number a = Unpack(sources.first, state.mxcsr);
  const Number b = Unpack(sources.last, state.mxcsr);
  const U first = soft::AsInput(sources.first, state.mxcsr);
  const U second = soft::AsInput(sources.last, state.mxcsr);
  if (a.kind == Kind::kSignallingNan) {
    return soft::Quieted(first, state.mxcsr);
  }
  if (b.kind == Kind::kSignallingNan) {
    return soft::Quieted(second, state.mxcsr);
  }
  bool takes_first = b.is_nan();
  if (!a.is_nan() && !b.is_nan()) {
    state.mxcsr |= a.is_denormal || b.is_denormal ? soft::kDenormal : 0;
    const bool wants_greater = (state.imm & 1) != 0;
    takes_first = IsLess(first, second, (state.imm & 2) != 0) != wants_greater;
  }
  const U chosen = takes_first ? first : second;
  switch (state.imm >> 2 & 3) {
    case 0:
      return soft::SignOf(first) | soft::MagnitudeOf(chosen);
    case 1:
      return chosen;
    case 2:
      return soft::MagnitudeOf(chosen);
    default:
      return Format<U>::kSign | chosen;
  }
}

// What VFIXUPIMM tells apart; four bits of the table for each.
enum Token : uint8_t {
  kQuietNanToken,
  kSignallingNanToken,
  kZeroToken,
  kOneToken,
  kMinusInfinityToken,
  kInfinityToken,
  kNegativeToken,
  kPositiveToken,
};

template <class U>
Token TokenOf(U bits, const Number& number) {
  switch (number.kind) {
    case Kind::kQuietNan:
      return kQuietNanToken;
    case Kind::kSignallingNan:
      return kSignallingNanToken;
    case Kind::kZero:
      return kZeroToken;
    case Kind::kInfinity:
      return number.is_negative ? kMinusInfinityToken : kInfinityToken;
    default:
      return bits == Format<U>::kOne ? kOneToken
             : number.is_negative    ? kNegativeToken
                                     : kPositiveToken;
  }
}

// The exceptions that the immediate asks for.
uint32_t FixupExceptions(Token token, uint8_t imm) {
  struct Row {
    Token token;
    uint32_t exception;
  };
  // By the bit of the immediate.
  constexpr std::array<Row, 8> kRows = {{{kZeroToken, soft::kDivideByZero},
                                         {kZeroToken, soft::kInvalid},
                                         {kOneToken, soft::kDivideByZero},
                                         {kOneToken, soft::kInvalid},
                                         {kSignallingNanToken, soft::kInvalid},
                                         {kMinusInfinityToken, soft::kInvalid},
                                         {kNegativeToken, soft::kInvalid},
                                         {kInfinityToken, soft::kInvalid}}};
  uint32_t exceptions = 0;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if ((imm >> i & 1) != 0 && kRows[i].token == token) {
      exceptions |= kRows[i].exception;
    }
  }
  return exceptions;
}

// What the four bits of the table say, of a destination and a source.
template <class U>
U Response(unsigned response, U to, U from) {
  using F = Format<U>;
  constexpr U kHalf = F::kOne - (U{1} << F::kFractionBits);
  constexpr U kNinety =
      sizeof(U) == 4 ? U{0x42b40000} : static_cast<U>(0x4056800000000000);
  constexpr U kHalfPi =
      sizeof(U) == 4 ? U{0x3fc90fdb} : static_cast<U>(0x3ff921fb54442d18);
  constexpr U kMost = F::kInfinity - 1;
  const std::array<U, 16> responses = {to,
                                       from,
                                       from | F::kInfinity | F::kQuiet,
                                       F::kIndefinite,
                                       F::kSign | F::kInfinity,
                                       F::kInfinity,
                                       soft::SignOf(from) | F::kInfinity,
                                       F::kSign,
                                       0,
                                       F::kSign | F::kOne,
                                       F::kOne,
                                       kHalf,
                                       kNinety,
                                       kHalfPi,
                                       kMost,
                                       F::kSign | kMost};
  return responses[response];
}

template <class U>
U Vfixupimm(const FloatSources<U>& sources, WideState& state) {
  const U from = soft::AsInput(sources.middle, state.mxcsr);
  const Token token = TokenOf(from, Unpack(from, state.mxcsr));
  state.mxcsr |= FixupExceptions(token, state.imm);
  const auto response = static_cast<unsigned>(sources.last >> (4 * token) & 15);
  return Response(response, sources.first, from);
}

// The classes of VFPCLASS that a number is of, as bits of its immediate.
template <class U>
uint8_t ClassesOf(U bits, uint32_t mxcsr) {
  const Number number = Unpack(bits, mxcsr);
  const auto signed_class = [&](unsigned positive) {
    return static_cast<uint8_t>(1u << (positive + number.is_negative));
  };
  switch (number.kind) {
    case Kind::kQuietNan:
      return 1u << 0;
    case Kind::kZero:
      return signed_class(1);
    case Kind::kInfinity:
      return signed_class(3);
    case Kind::kFinite:
      return static_cast<uint8_t>((number.is_denormal ? 1u << 5 : 0) |
                                  (number.is_negative ? 1u << 6 : 0));
    default:
      return 1u << 7;
  }
}

template <class U>
uint64_t ClassesToOpmask(const Wide& src, const WideState& state) {
  const auto elements = ElementsOf<U>(src);
  uint64_t bits = 0;
  for (size_t i = 0; i < CountOf<U>(state); ++i) {
    const bool is_of_one =
        (ClassesOf(elements[i], state.mxcsr) & state.imm) != 0;
    bits |= uint64_t{is_of_one} << i;
  }
  return bits;
}

}  // namespace

#define CLEW_SOFT_FORMS(Name, mnemonic, sources)                          \
  void Name##ps(Wide& dst, const Wide& src, WideState& state) {           \
    EachFloat<uint32_t, Name>(dst, src, state, CountOf<uint32_t>(state)); \
  }                                                                       \
  void Name##pd(Wide& dst, const Wide& src, WideState& state) {           \
    EachFloat<uint64_t, Name>(dst, src, state, CountOf<uint64_t>(state)); \
  }                                                                       \
  void Name##ss(Wide& dst, const Wide& src, WideState& state) {           \
    LowFloat<uint32_t, Name, sources>(dst, src, state);                   \
  }                                                                       \
  void Name##sd(Wide& dst, const Wide& src, WideState& state) {           \
    LowFloat<uint64_t, Name, sources>(dst, src, state);                   \
  }
CLEW_EVEX_FLOAT_OPS(CLEW_SOFT_FORMS)

uint64_t Vfpclassps(const Wide&, const Wide& src, WideState& state) {
  return ClassesToOpmask<uint32_t>(src, state);
}

uint64_t Vfpclasspd(const Wide&, const Wide& src, WideState& state) {
  return ClassesToOpmask<uint64_t>(src, state);
}

// As CLEW_HOST_FLOAT_OP, with `operands` behind the source.
#define CLEW_HOST_EVEX_OP(Name, mnemonic, operands)                        \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {             \
    __m128i d = ToHost(dst);                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                               \
    uint32_t host;                                                         \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[s], " operands)         \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "x"(ToHost(src)));                              \
    state.mxcsr |= guest & kMxcsrFlags;                                    \
    FromHost(d, dst);                                                      \
  }
#define CLEW_HOST_EVEX_FORMS(Name, mnemonic)               \
  CLEW_HOST_EVEX_OP(Name##ps, mnemonic "ps", "%[d]")       \
  CLEW_HOST_EVEX_OP(Name##pd, mnemonic "pd", "%[d]")       \
  CLEW_HOST_EVEX_OP(Name##ss, mnemonic "ss", "%[d], %[d]") \
  CLEW_HOST_EVEX_OP(Name##sd, mnemonic "sd", "%[d], %[d]")
CLEW_EVEX_APPROXIMATE_OPS(CLEW_HOST_EVEX_FORMS)

}  // namespace clew::machine
