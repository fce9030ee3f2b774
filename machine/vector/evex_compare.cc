#include "machine/vector/evex_compare.h"

#include <functional>

namespace clew::machine {
namespace {

// Bit i: whether holds(first, last), of the elements i.
template <class T, class Holds>
uint64_t BitsWhere(const Wide& first, const Wide& src, Holds holds) {
  const auto a = ElementsOf<T>(first);
  const auto b = ElementsOf<T>(src);
  uint64_t bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    bits |= uint64_t{holds(a[i], b[i])} << i;
  }
  return bits;
}

}  // namespace

// Source: Intel SDM vol. 2, "VPCMPB/VPCMPUB", "Comparison Predicate". The upper
// four predicates are the negations of the lower ones.
template <class T>
uint64_t HoldsByImm(const Wide& first, const Wide& src, WideState& state) {
  constexpr uint8_t kNegates = 4;
  uint64_t bits = 0;
  switch (state.imm & 3) {
    case 0:
      bits = BitsWhere<T>(first, src, std::equal_to<T>());
      break;
    case 1:
      bits = BitsWhere<T>(first, src, std::less<T>());
      break;
    case 2:
      bits = BitsWhere<T>(first, src, std::less_equal<T>());
      break;
    default:
      break;  // never
  }
  return (state.imm & kNegates) != 0 ? ~bits : bits;
}

template <class T>
uint64_t AreEqual(const Wide& first, const Wide& src, WideState&) {
  return BitsWhere<T>(first, src, std::equal_to<T>());
}

template <class T>
uint64_t FirstIsGreater(const Wide& first, const Wide& src, WideState&) {
  return BitsWhere<T>(first, src, std::greater<T>());
}

template <class T>
uint64_t HaveCommonBits(const Wide& first, const Wide& src, WideState&) {
  return BitsWhere<T>(first, src, [](T a, T b) { return (a & b) != 0; });
}

template <class T>
uint64_t HaveNoCommonBits(const Wide& first, const Wide& src, WideState&) {
  return BitsWhere<T>(first, src, [](T a, T b) { return (a & b) == 0; });
}

#define CLEW_INSTANTIATE(mnemonic, Holds, Element) \
  template uint64_t Holds<Element>(const Wide&, const Wide&, WideState&);
CLEW_EVEX_COMPARISONS(CLEW_INSTANTIATE)
#undef CLEW_INSTANTIATE

uint64_t Vpshufbitqmb(const Wide& first, const Wide& src, WideState&) {
  const auto quads = ElementsOf<uint64_t>(first);
  const auto places = ElementsOf<uint8_t>(src);
  uint64_t bits = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    bits |= (quads[i / 8] >> (places[i] & 63) & 1) << i;
  }
  return bits;
}

}  // namespace clew::machine
