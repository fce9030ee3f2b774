#include "machine/vector/evex_permute.h"

#include <algorithm>
#include <limits>

namespace clew::machine {
namespace {

// Elements of `low` with those of `high` behind them, as many of both as the
// vector length has.
template <class U>
class Pair {
 public:
  Pair(const Wide& low, const Wide& high, const WideState& state)
      : low_(ElementsOf<U>(low)),
        high_(ElementsOf<U>(high)),
        count_(CountOf<U>(state)) {}

  U At(uint64_t index) const {
    index %= 2 * count_;
    return index < count_ ? low_[index] : high_[index - count_];
  }

 private:
  WideElements<U> low_;
  WideElements<U> high_;
  size_t count_;
};

// dst = the elements of the pair that those of `indices` name.
template <class U>
void Choose(Wide& dst, const Pair<U>& pair, const Wide& indices,
            const WideState& state) {
  const auto index = ElementsOf<U>(indices);
  WideElements<U> to = {};
  for (size_t i = 0; i < CountOf<U>(state); ++i) {
    to[i] = pair.At(index[i]);
  }
  dst = FromElements<U>(to);
}

// The first lane of the part that the immediate names.
template <unsigned kLanes>
unsigned FirstLane(const WideState& state) {
  return kLanes * state.imm % state.lanes;
}

}  // namespace

template <class To, class From>
void Converted(Wide& dst, const Wide& src, WideState& state) {
  MakeElements<To, From>(dst, src, state,
                         [](From value) { return static_cast<To>(value); });
}

template <class To, class From>
void SaturatedTo(Wide& dst, const Wide& src, WideState& state) {
  using Limits = std::numeric_limits<To>;
  MakeElements<To, From>(dst, src, state, [](From value) {
    return static_cast<To>(
        std::clamp<From>(value, Limits::min(), Limits::max()));
  });
}

#define CLEW_INSTANTIATE(mnemonic, Operation, To, From) \
  template void Operation<To, From>(Wide&, const Wide&, WideState&);
CLEW_EVEX_CONVERSIONS(CLEW_INSTANTIATE)
#undef CLEW_INSTANTIATE

template <class U>
void Vperm(Wide& dst, const Wide& src, WideState& state) {
  Choose(dst, Pair<U>(src, src, state), dst, state);
}

template <class U>
void Vpermi2(Wide& dst, const Wide& src, WideState& state) {
  Choose(dst, Pair<U>(state.third, src, state), dst, state);
}

template <class U>
void Vpermt2(Wide& dst, const Wide& src, WideState& state) {
  Choose(dst, Pair<U>(dst, src, state), state.third, state);
}

template <class U>
void Vpcompress(Wide& dst, const Wide& src, WideState& state) {
  const auto from = ElementsOf<U>(src);
  WideElements<U> to = {};
  size_t count = 0;
  uint64_t made = 0;
  for (size_t i = 0; i < CountOf<U>(state); ++i) {
    if ((state.selected >> i & 1) != 0) {
      to[count++] = from[i];
      made = made << 1 | 1;
    }
  }
  state.selected = made;
  dst = FromElements<U>(to);
}

template <class U>
void Vpexpand(Wide& dst, const Wide& src, WideState& state) {
  const auto from = ElementsOf<U>(src);
  WideElements<U> to = {};
  size_t count = 0;
  for (size_t i = 0; i < CountOf<U>(state); ++i) {
    if ((state.selected >> i & 1) != 0) {
      to[i] = from[count++];
    }
  }
  dst = FromElements<U>(to);
}

template <class U>
void Valign(Wide& dst, const Wide& src, WideState& state) {
  const Pair<U> pair(src, dst, state);
  const size_t count = CountOf<U>(state);
  WideElements<U> to = {};
  for (size_t i = 0; i < count; ++i) {
    to[i] = pair.At(i + state.imm % count);
  }
  dst = FromElements<U>(to);
}

template <class U>
void Vpconflict(Wide& dst, const Wide& src, WideState& state) {
  const auto from = ElementsOf<U>(src);
  WideElements<U> to = {};
  for (size_t i = 0; i < CountOf<U>(state); ++i) {
    for (size_t below = 0; below < i; ++below) {
      to[i] |= U{from[below] == from[i]} << below;
    }
  }
  dst = FromElements<U>(to);
}

#define CLEW_INSTANTIATE(Operation, U) \
  template void Operation<U>(Wide&, const Wide&, WideState&);
#define CLEW_INSTANTIATE_SIZES(Operation) \
  CLEW_INSTANTIATE(Operation, uint8_t)    \
  CLEW_INSTANTIATE(Operation, uint16_t)   \
  CLEW_INSTANTIATE(Operation, uint32_t)   \
  CLEW_INSTANTIATE(Operation, uint64_t)
CLEW_INSTANTIATE_SIZES(Vperm)
CLEW_INSTANTIATE_SIZES(Vpermi2)
CLEW_INSTANTIATE_SIZES(Vpermt2)
CLEW_INSTANTIATE_SIZES(Vpcompress)
CLEW_INSTANTIATE_SIZES(Vpexpand)
CLEW_INSTANTIATE(Valign, uint32_t)
CLEW_INSTANTIATE(Valign, uint64_t)
CLEW_INSTANTIATE(Vpconflict, uint32_t)
CLEW_INSTANTIATE(Vpconflict, uint64_t)
#undef CLEW_INSTANTIATE_SIZES
#undef CLEW_INSTANTIATE

void VpermqImm(Wide& dst, const Wide& src, WideState& state) {
  const auto from = ElementsOf<uint64_t>(src);
  WideElements<uint64_t> to;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t half = i / 4 * 4;
    to[i] = from[half + (state.imm >> (2 * (i % 4)) & 3)];
  }
  dst = FromElements<uint64_t>(to);
}

void Vshuff32x4(Wide& dst, const Wide& src, WideState& state) {
  const Wide first = dst;
  const unsigned bits = state.lanes / 2;  // that name one of 2, of 4
  for (unsigned i = 0; i < state.lanes; ++i) {
    const Wide& from = i < state.lanes / 2 ? first : src;
    dst[i] = from[(state.imm >> (i * bits)) % state.lanes];
  }
}

template <unsigned kLanes>
void Vinsert(Wide& dst, const Wide& src, WideState& state) {
  std::ranges::copy_n(src.begin(), kLanes,
                      dst.begin() + FirstLane<kLanes>(state));
}

template <unsigned kLanes>
void Vextract(Wide& dst, const Wide& src, WideState& state) {
  std::ranges::copy_n(src.begin() + FirstLane<kLanes>(state), kLanes,
                      dst.begin());
}

template void Vinsert<1>(Wide&, const Wide&, WideState&);
template void Vinsert<2>(Wide&, const Wide&, WideState&);
template void Vextract<1>(Wide&, const Wide&, WideState&);
template void Vextract<2>(Wide&, const Wide&, WideState&);

void Vpunpcklqdq(Vec128& dst, const Vec128& src, VecState&) {
  dst.q[1] = src.q[0];
}

void Vpunpckhqdq(Vec128& dst, const Vec128& src, VecState&) {
  dst = {{dst.q[1], src.q[1]}};
}

void Vmovddup(Vec128& dst, const Vec128& src, VecState&) {
  dst = {{src.q[0], src.q[0]}};
}

}  // namespace clew::machine
