#include "machine/vector/shuffle.h"

#include <cstring>

#include "machine/vector/integer.h"

namespace clew::machine {
namespace {

// The element of `from` that bits 2i, 2i+1 of `imm` name.
template <class U>
U Selected(const Elements<U>& from, size_t base, uint8_t imm, size_t i) {
  return from[base + ((imm >> (2 * i)) & 3)];
}

// PSHUFLW and PSHUFHW: the four words from `base` on.
void ShuffleWords(Vec128& dst, const Vec128& src, uint8_t imm, size_t base) {
  const auto from = ElementsOf<uint16_t>(src);
  auto to = from;
  for (size_t i = 0; i < 4; ++i) {
    to[base + i] = Selected(from, base, imm, i);
  }
  dst = FromElements<uint16_t>(to);
}

// Bytes offset..offset+15 of low:high, as if zeros followed.
Vec128 WindowOf(const Vec128& low, const Vec128& high, size_t offset) {
  std::array<uint8_t, 48> bytes = {};
  std::memcpy(bytes.data(), &low, 16);
  std::memcpy(bytes.data() + 16, &high, 16);
  Vec128 window;
  if (offset <= 32) {
    std::memcpy(&window, bytes.data() + offset, 16);
  }
  return window;
}

template <class U>
void BlendByBits(Vec128& dst, const Vec128& src, uint8_t bits) {
  const auto from = ElementsOf<U>(src);
  auto to = ElementsOf<U>(dst);
  for (size_t i = 0; i < to.size(); ++i) {
    if ((bits >> i) & 1) {
      to[i] = from[i];
    }
  }
  dst = FromElements<U>(to);
}

// Bit i is the top bit of element i.
template <class U>
uint64_t TopBits(const Vec128& value) {
  const auto elements = ElementsOf<U>(value);
  uint64_t bits = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    bits |= static_cast<uint64_t>(elements[i] >> (8 * sizeof(U) - 1)) << i;
  }
  return bits;
}

template <class U>
void BlendByMask(Vec128& dst, const Vec128& src, const Vec128& mask) {
  const auto from = ElementsOf<U>(src);
  const auto select = ElementsOf<U>(mask);
  auto to = ElementsOf<U>(dst);
  for (size_t i = 0; i < to.size(); ++i) {
    if (select[i] >> (8 * sizeof(U) - 1)) {
      to[i] = from[i];
    }
  }
  dst = FromElements<U>(to);
}

template <class U>
void Insert(Vec128& dst, const Vec128& src, uint8_t imm) {
  auto to = ElementsOf<U>(dst);
  to[imm % to.size()] = static_cast<U>(src.q[0]);
  dst = FromElements<U>(to);
}

template <class U>
uint64_t Extract(const Vec128& src, uint8_t imm) {
  const auto from = ElementsOf<U>(src);
  return from[imm % from.size()];
}

uint16_t SumOfDifferences(const uint8_t* a, const uint8_t* b) {
  unsigned sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    sum += a[i] > b[i] ? unsigned{a[i]} - b[i] : unsigned{b[i]} - a[i];
  }
  return static_cast<uint16_t>(sum);
}

}  // namespace

void Pshufd(Vec128& dst, const Vec128& src, VecState& state) {
  const auto from = ElementsOf<uint32_t>(src);
  Elements<uint32_t> to;
  for (size_t i = 0; i < 4; ++i) {
    to[i] = Selected(from, 0, state.imm, i);
  }
  dst = FromElements<uint32_t>(to);
}

void Pshuflw(Vec128& dst, const Vec128& src, VecState& state) {
  ShuffleWords(dst, src, state.imm, 0);
}

void Pshufhw(Vec128& dst, const Vec128& src, VecState& state) {
  ShuffleWords(dst, src, state.imm, 4);
}

void Shufps(Vec128& dst, const Vec128& src, VecState& state) {
  const auto low = ElementsOf<uint32_t>(dst);
  const auto high = ElementsOf<uint32_t>(src);
  const Elements<uint32_t> selected = {
      Selected(low, 0, state.imm, 0), Selected(low, 0, state.imm, 1),
      Selected(high, 0, state.imm, 2), Selected(high, 0, state.imm, 3)};
  dst = FromElements<uint32_t>(selected);
}

void Shufpd(Vec128& dst, const Vec128& src, VecState& state) {
  dst = {{dst.q[state.imm & 1], src.q[(state.imm >> 1) & 1]}};
}

void Palignr(Vec128& dst, const Vec128& src, VecState& state) {
  dst = WindowOf(src, dst, state.imm);
}

void Pslldq(Vec128& dst, const Vec128&, VecState& state) {
  dst = state.imm > 15 ? Vec128{}
                       : WindowOf(Vec128{}, dst, size_t{16} - state.imm);
}

void Psrldq(Vec128& dst, const Vec128&, VecState& state) {
  dst = WindowOf(dst, Vec128{}, state.imm);
}

// A shift by an immediate is the shift by a register that holds it: the one of
// its own namespace (the parentheses keep the arguments' out).
#define CLEW_SHIFT_BY_IMM(Name)                                 \
  void Name##Imm(Vec128& dst, const Vec128&, VecState& state) { \
    (Name)(dst, Vec128{{state.imm, 0}}, state);                 \
  }
#define CLEW_SHIFTS_BY_IMM \
  CLEW_SHIFT_BY_IMM(Psllw) \
  CLEW_SHIFT_BY_IMM(Pslld) \
  CLEW_SHIFT_BY_IMM(Psllq) \
  CLEW_SHIFT_BY_IMM(Psrlw) \
  CLEW_SHIFT_BY_IMM(Psrld) \
  CLEW_SHIFT_BY_IMM(Psrlq) CLEW_SHIFT_BY_IMM(Psraw) CLEW_SHIFT_BY_IMM(Psrad)
CLEW_SHIFTS_BY_IMM
namespace mmx {
CLEW_SHIFTS_BY_IMM
}  // namespace mmx
#undef CLEW_SHIFTS_BY_IMM
#undef CLEW_SHIFT_BY_IMM

void Blendps(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByBits<uint32_t>(dst, src, state.imm);
}

void Blendpd(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByBits<uint64_t>(dst, src, state.imm);
}

void Pblendw(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByBits<uint16_t>(dst, src, state.imm);
}

void Blendvps(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByMask<uint32_t>(dst, src, state.third);
}

void Blendvpd(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByMask<uint64_t>(dst, src, state.third);
}

void Pblendvb(Vec128& dst, const Vec128& src, VecState& state) {
  BlendByMask<uint8_t>(dst, src, state.third);
}

void Insertps(Vec128& dst, const Vec128& src, VecState& state) {
  auto to = ElementsOf<uint32_t>(dst);
  to[(state.imm >> 4) & 3] = ElementsOf<uint32_t>(src)[state.imm >> 6];
  for (size_t i = 0; i < 4; ++i) {
    if ((state.imm >> i) & 1) {
      to[i] = 0;
    }
  }
  dst = FromElements<uint32_t>(to);
}

void Mpsadbw(Vec128& dst, const Vec128& src, VecState& state) {
  const auto a = ElementsOf<uint8_t>(dst);
  const auto b = ElementsOf<uint8_t>(src);
  const size_t a_start = (state.imm & 4) ? 4 : 0;
  const size_t b_start = size_t{4} * (state.imm & 3);
  Elements<uint16_t> sums;
  for (size_t i = 0; i < 8; ++i) {
    sums[i] = SumOfDifferences(&a[a_start + i], &b[b_start]);
  }
  dst = FromElements<uint16_t>(sums);
}

void Pinsrb(Vec128& dst, const Vec128& src, VecState& state) {
  Insert<uint8_t>(dst, src, state.imm);
}

void Pinsrw(Vec128& dst, const Vec128& src, VecState& state) {
  Insert<uint16_t>(dst, src, state.imm);
}

void Pinsrd(Vec128& dst, const Vec128& src, VecState& state) {
  Insert<uint32_t>(dst, src, state.imm);
}

uint64_t Pextrb(const Vec128& src, VecState& state) {
  return Extract<uint8_t>(src, state.imm);
}

uint64_t Pextrw(const Vec128& src, VecState& state) {
  return Extract<uint16_t>(src, state.imm);
}

uint64_t Pextrd(const Vec128& src, VecState& state) {
  return Extract<uint32_t>(src, state.imm);
}

uint64_t Pmovmskb(const Vec128& src, VecState&) {
  return TopBits<uint8_t>(src);
}

uint64_t Movmskps(const Vec128& src, VecState&) {
  return TopBits<uint32_t>(src);
}

uint64_t Movmskpd(const Vec128& src, VecState&) {
  return TopBits<uint64_t>(src);
}

namespace mmx {

void Palignr(Vec128& dst, const Vec128& src, VecState& state) {
  dst = WindowOf(Vec128{{src.q[0], dst.q[0]}}, Vec128{}, state.imm);
}

void Pinsrw(Vec128& dst, const Vec128& src, VecState& state) {
  Insert<uint16_t>(dst, src, state.imm & 3);
}

uint64_t Pextrw(const Vec128& src, VecState& state) {
  return Extract<uint16_t>(src, state.imm & 3);
}

}  // namespace mmx

uint64_t Ptest(const Vec128& dst, const Vec128& src, VecState&) {
  const uint64_t both = (dst.q[0] & src.q[0]) | (dst.q[1] & src.q[1]);
  const uint64_t only = (~dst.q[0] & src.q[0]) | (~dst.q[1] & src.q[1]);
  return (both == 0 ? kFlagZero : 0) | (only == 0 ? kFlagCarry : 0);
}

}  // namespace clew::machine
