#include "machine/vector/evex_integer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// What an element is made from: those of the sources at its place.
template <class T>
struct Sources {
  T first;
  T third;
  T last;
  uint8_t imm;
};

template <class T, T (*kMakes)(const Sources<T>&)>
void EachElement(Wide& dst, const Wide& src, const WideState& state) {
  auto to = ElementsOf<T>(dst);
  const auto third = ElementsOf<T>(state.third);
  const auto last = ElementsOf<T>(src);
  for (size_t i = 0; i < CountOf<T>(state); ++i) {
    to[i] = kMakes({to[i], third[i], last[i], state.imm});
  }
  dst = FromElements<T>(to);
}

template <class T>
T Absolute(const Sources<T>& of) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(of.last);
  return static_cast<T>(of.last < 0 ? 0 - bits : bits);
}

template <class T>
T Least(const Sources<T>& of) {
  return std::min(of.first, of.last);
}

template <class T>
T Greatest(const Sources<T>& of) {
  return std::max(of.first, of.last);
}

template <class U>
U LowProduct(const Sources<U>& of) {
  return of.first * of.last;
}

// A count of as many bits as there are, or more, leaves nothing.
template <class U>
U ShiftedLeft(const Sources<U>& of) {
  return of.last < kBitsOf<U> ? static_cast<U>(of.first << of.last) : U{0};
}

template <class U>
U ShiftedRight(const Sources<U>& of) {
  return of.last < kBitsOf<U> ? static_cast<U>(of.first >> of.last) : U{0};
}

// Such a count leaves the sign.
template <class T>
T ShiftedWithSign(const Sources<T>& of) {
  const auto count = static_cast<std::make_unsigned_t<T>>(of.last);
  return static_cast<T>(of.first >> std::min<uint64_t>(count, kBitsOf<T> - 1));
}

template <class U>
U RotatedLeft(const Sources<U>& of) {
  return std::rotl(of.first, static_cast<int>(of.last % kBitsOf<U>));
}

template <class U>
U RotatedRight(const Sources<U>& of) {
  return std::rotr(of.first, static_cast<int>(of.last % kBitsOf<U>));
}

template <class U>
U RotatedLeftByImm(const Sources<U>& of) {
  return std::rotl(of.last, of.imm);
}

template <class U>
U RotatedRightByImm(const Sources<U>& of) {
  return std::rotr(of.last, of.imm);
}

// The upper half of high:low shifted left by a count modulo its half.
template <class U>
U UpperOfLeftShift(U high, U low, uint64_t count) {
  count %= kBitsOf<U>;
  return count == 0
             ? high
             : static_cast<U>(high << count | low >> (kBitsOf<U> - count));
}

// The lower half of high:low shifted right.
template <class U>
U LowerOfRightShift(U high, U low, uint64_t count) {
  count %= kBitsOf<U>;
  return count == 0
             ? low
             : static_cast<U>(low >> count | high << (kBitsOf<U> - count));
}

template <class U>
U ShiftedInFromRight(const Sources<U>& of) {
  return UpperOfLeftShift(of.first, of.third, of.last);
}

template <class U>
U ShiftedInFromLeft(const Sources<U>& of) {
  return LowerOfRightShift(of.third, of.first, of.last);
}

template <class U>
U ShiftedInFromRightByImm(const Sources<U>& of) {
  return UpperOfLeftShift(of.first, of.last, of.imm);
}

template <class U>
U ShiftedInFromLeftByImm(const Sources<U>& of) {
  return LowerOfRightShift(of.last, of.first, of.imm);
}

template <class U>
U LeadingZeros(const Sources<U>& of) {
  return static_cast<U>(std::countl_zero(of.last));
}

template <class U>
U SetBits(const Sources<U>& of) {
  return static_cast<U>(std::popcount(of.last));
}

// The product of the low 52 bits: 104 bits.
__extension__ typedef unsigned __int128 Product;
Product ProductOf52(const Sources<uint64_t>& of) {
  constexpr uint64_t kLow52 = (uint64_t{1} << 52) - 1;
  return Product{of.third & kLow52} * (of.last & kLow52);
}

template <class U>
U PlusLowOfProduct52(const Sources<U>& of) {
  return of.first + (static_cast<U>(ProductOf52(of)) << 12 >> 12);
}

template <class U>
U PlusHighOfProduct52(const Sources<U>& of) {
  return of.first + static_cast<U>(ProductOf52(of) >> 52);
}

// The first source plus the products of parts of the others, of type A and B.
template <class A, class B>
int64_t PlusDot(const Sources<int32_t>& of) {
  static_assert(sizeof(A) == sizeof(B));
  using PartsOfA = std::array<A, sizeof(int32_t) / sizeof(A)>;
  using PartsOfB = std::array<B, sizeof(int32_t) / sizeof(B)>;
  const auto a = std::bit_cast<PartsOfA>(of.third);
  const auto b = std::bit_cast<PartsOfB>(of.last);
  int64_t sum = of.first;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += int64_t{a[i]} * b[i];
  }
  return sum;
}

template <class T>
T Saturated(int64_t value) {
  return static_cast<T>(std::clamp<int64_t>(
      value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
T PlusDotOfBytes(const Sources<T>& of) {
  return static_cast<T>(PlusDot<uint8_t, int8_t>(of));
}

template <class T>
T SaturatedPlusDotOfBytes(const Sources<T>& of) {
  return Saturated<T>(PlusDot<uint8_t, int8_t>(of));
}

template <class T>
T PlusDotOfWords(const Sources<T>& of) {
  return static_cast<T>(PlusDot<int16_t, int16_t>(of));
}

template <class T>
T SaturatedPlusDotOfWords(const Sources<T>& of) {
  return Saturated<T>(PlusDot<int16_t, int16_t>(of));
}

uint64_t ShiftedBytes(const Sources<uint64_t>& of) {
  uint64_t bytes = 0;
  for (unsigned at = 0; at < kBitsOf<uint64_t>; at += 8) {
    const auto from = static_cast<int>(of.first >> at & 63);
    bytes |= (std::rotr(of.last, from) & 0xff) << at;
  }
  return bytes;
}

}  // namespace

#define CLEW_DEFINE(Name, mnemonic, Element, sources, Makes) \
  void Name(Wide& dst, const Wide& src, WideState& state) {  \
    EachElement<Element, Makes<Element>>(dst, src, state);   \
  }
CLEW_EVEX_INTEGER_OPS(CLEW_DEFINE)
#undef CLEW_DEFINE

void Vpmultishiftqb(Wide& dst, const Wide& src, WideState& state) {
  EachElement<uint64_t, ShiftedBytes>(dst, src, state);
}

void Psraq(Vec128& dst, const Vec128& src, VecState&) {
  for (uint64_t& quad : dst.q) {
    quad = static_cast<uint64_t>(static_cast<int64_t>(quad) >>
                                 std::min<uint64_t>(src.q[0], 63));
  }
}

void PsraqImm(Vec128& dst, const Vec128&, VecState& state) {
  Psraq(dst, Vec128{{state.imm, 0}}, state);
}

// MPSADBW of the doublewords that the immediate selects: the i-th sum is of
// bytes from the i-th on of the lower or upper eight, and a doubleword of dst.
void Vdbpsadbw(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 selected;
  Pshufd(selected, src, state);
  Elements<uint16_t> sums;
  for (size_t i = 0; i < sums.size(); ++i) {
    constexpr uint8_t kUpper = 4;
    VecState of_sum = state;
    of_sum.imm = static_cast<uint8_t>(i / 2 | (i < 4 ? 0 : kUpper));
    Vec128 all = selected;
    Mpsadbw(all, dst, of_sum);
    sums[i] = ElementsOf<uint16_t>(all)[i];
  }
  dst = FromElements<uint16_t>(sums);
}

}  // namespace clew::machine
