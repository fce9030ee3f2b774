#include "machine/vector/gfni.h"

namespace clew::machine {
namespace {

constexpr uint8_t GfProduct(uint8_t a, uint8_t b) {
  constexpr unsigned kPolynomial = 0x11b;
  unsigned sum = 0;
  for (int i = 7; i >= 0; --i) {
    sum <<= 1;
    sum ^= (sum & 0x100) != 0 ? kPolynomial : 0;
    sum ^= (b >> i & 1) != 0 ? unsigned{a} : 0;
  }
  return static_cast<uint8_t>(sum);
}

// x^254, as every element but 0 is a root of x^255 = 1. Of 0 it is 0.
constexpr uint8_t Inverse(uint8_t x) {
  uint8_t power = 1;
  uint8_t square = x;
  for (int bit = 1; bit < 8; ++bit) {
    square = GfProduct(square, square);
    power = GfProduct(power, square);
  }
  return power;
}

constexpr std::array<uint8_t, 256> kInverses = [] {
  std::array<uint8_t, 256> inverses = {};
  for (unsigned x = 0; x < inverses.size(); ++x) {
    inverses[x] = Inverse(static_cast<uint8_t>(x));
  }
  return inverses;
}();

// The matrix has its row for bit 0 in its uppermost byte.
uint8_t Transformed(uint64_t matrix, uint8_t x, uint8_t plus) {
  unsigned result = plus;
  for (unsigned bit = 0; bit < 8; ++bit) {
    const auto row = static_cast<uint8_t>(matrix >> (8 * (7 - bit)));
    result ^=
        (static_cast<unsigned>(std::popcount(static_cast<uint8_t>(row & x))) &
         1)
        << bit;
  }
  return static_cast<uint8_t>(result);
}

template <class F>
void Transform(Vec128& dst, const Vec128& src, uint8_t plus, F source) {
  auto bytes = ElementsOf<uint8_t>(dst);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = Transformed(src.q[i / 8], source(bytes[i]), plus);
  }
  dst = FromElements<uint8_t>(bytes);
}

}  // namespace

void Gf2p8mulb(Vec128& dst, const Vec128& src, VecState&) {
  auto bytes = ElementsOf<uint8_t>(dst);
  const auto factors = ElementsOf<uint8_t>(src);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = GfProduct(bytes[i], factors[i]);
  }
  dst = FromElements<uint8_t>(bytes);
}

void Gf2p8affineqb(Vec128& dst, const Vec128& src, VecState& state) {
  Transform(dst, src, state.imm, [](uint8_t x) { return x; });
}

void Gf2p8affineinvqb(Vec128& dst, const Vec128& src, VecState& state) {
  Transform(dst, src, state.imm, [](uint8_t x) { return kInverses[x]; });
}

}  // namespace clew::machine
