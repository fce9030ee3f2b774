#include "machine/vector/permute.h"

#include "machine/vector/shuffle.h"

namespace clew::machine {
namespace {

// Elements of dst = operation(element of dst, element of src).
template <class U, class Operation>
void ForEach(Vec128& dst, const Vec128& src, Operation operation) {
  auto to = ElementsOf<U>(dst);
  const auto from = ElementsOf<U>(src);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = operation(to[i], from[i]);
  }
  dst = FromElements<U>(to);
}

// A count of as many bits as there are, or more, leaves nothing.
template <class U>
void ShiftLeft(Vec128& dst, const Vec128& counts) {
  ForEach<U>(dst, counts, [](U value, U count) {
    return count < kBitsOf<U> ? static_cast<U>(value << count) : U{0};
  });
}

template <class U>
void ShiftRight(Vec128& dst, const Vec128& counts) {
  ForEach<U>(dst, counts, [](U value, U count) {
    return count < kBitsOf<U> ? static_cast<U>(value >> count) : U{0};
  });
}

// The top bits of all elements, where they are; PTEST of them alone.
uint64_t TestBits(const Vec128& dst, const Vec128& src, uint64_t bits,
                  VecState& state) {
  return Ptest(dst, Vec128{{src.q[0] & bits, src.q[1] & bits}}, state);
}

}  // namespace

void Vpermilps(Vec128& dst, const Vec128& src, VecState&) {
  const auto from = ElementsOf<uint32_t>(dst);
  ForEach<uint32_t>(
      dst, src, [&](uint32_t, uint32_t control) { return from[control & 3]; });
}

void Vpermilpd(Vec128& dst, const Vec128& src, VecState&) {
  dst = {{dst.q[(src.q[0] >> 1) & 1], dst.q[(src.q[1] >> 1) & 1]}};
}

void Vpsllvd(Vec128& dst, const Vec128& src, VecState&) {
  ShiftLeft<uint32_t>(dst, src);
}

void Vpsllvq(Vec128& dst, const Vec128& src, VecState&) {
  ShiftLeft<uint64_t>(dst, src);
}

void Vpsrlvd(Vec128& dst, const Vec128& src, VecState&) {
  ShiftRight<uint32_t>(dst, src);
}

void Vpsrlvq(Vec128& dst, const Vec128& src, VecState&) {
  ShiftRight<uint64_t>(dst, src);
}

void Vpsravd(Vec128& dst, const Vec128& src, VecState&) {
  ForEach<uint32_t>(dst, src, [](uint32_t value, uint32_t count) {
    const uint32_t bits = count < 31 ? count : 31;
    return static_cast<uint32_t>(static_cast<int32_t>(value) >> bits);
  });
}

void VpermilpdImm(Vec128& dst, const Vec128& src, VecState& state) {
  dst = {{src.q[state.imm & 1], src.q[(state.imm >> 1) & 1]}};
}

Vec256 Vpermd(const Vec256& indices, const Vec256& from) {
  using Eight = std::array<uint32_t, 8>;
  const auto index = std::bit_cast<Eight>(indices);
  const auto elements = std::bit_cast<Eight>(from);
  Eight result;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = elements[index[i] & 7];
  }
  return std::bit_cast<Vec256>(result);
}

uint64_t Vtestps(const Vec128& dst, const Vec128& src, VecState& state) {
  return TestBits(dst, src, 0x8000000080000000, state);
}

uint64_t Vtestpd(const Vec128& dst, const Vec128& src, VecState& state) {
  return TestBits(dst, src, 0x8000000000000000, state);
}

}  // namespace clew::machine
