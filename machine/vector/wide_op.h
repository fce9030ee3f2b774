#ifndef CLEW_MACHINE_VECTOR_WIDE_OP_H_
#define CLEW_MACHINE_VECTOR_WIDE_OP_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "machine/registers.h"
#include "machine/vector/vec_op.h"

namespace clew::machine {

// A vector register of up to 512 bits, lane by lane.
using Wide = std::array<Vec128, kVecLanes>;

// What an operation on up to 512 bits sees beside its operands.
struct WideState {
  unsigned lanes = 1;       // the vector length: 1, 2 or 4; 1 of a scalar
  uint32_t mxcsr = 0x1f80;  // exception flags are added, the rest is read
  uint8_t imm = 0;
  bool is_of_qemu = false;  // Registers::is_of_qemu
  // Bit i: element i of the result is selected by the writemask; all bits are
  // set where there is none. An operation that moves elements together or apart
  // (VPCOMPRESSD, VPEXPANDD) leaves there which elements it made.
  uint64_t selected = ~uint64_t{0};
  Wide third = {};  // of an operation with three sources: the second one
};

// The shapes of AVX-512 value functions. Each is a total function of its
// arguments, as those of machine/vector/vec_op.h; what it does with lanes from
// state.lanes on is of no effect.
//
// dst = op(dst, src); with three sources, dst = op(dst, state.third, src).
// Where an instruction has one source, dst is ignored.
using WideOp = void (*)(Wide& dst, const Wide& src, WideState& state);
// An opmask = op(first, src): bit i tells of element i. Those of elements that
// there are not are ignored.
using ToOpmaskOp = uint64_t (*)(const Wide& first, const Wide& src,
                                WideState& state);

// 512 bits seen as elements of U, least significant first.
template <class U>
using WideElements = std::array<U, sizeof(Wide) / sizeof(U)>;

template <class U>
WideElements<U> ElementsOf(const Wide& value) {
  return std::bit_cast<WideElements<U>>(value);
}

template <class U>
Wide FromElements(const WideElements<U>& elements) {
  return std::bit_cast<Wide>(elements);
}

// How many elements of U the vector length has.
template <class U>
size_t CountOf(const WideState& state) {
  return state.lanes * kLaneBytes / sizeof(U);
}

// Elements of dst = make(element of src), side by side in both: as many as the
// wider ones of them the vector length has. The others of dst are zero.
template <class To, class From, class Make>
void MakeElements(Wide& dst, const Wide& src, const WideState& state,
                  Make make) {
  const auto from = ElementsOf<From>(src);
  WideElements<To> to = {};
  const size_t count = std::min(CountOf<To>(state), CountOf<From>(state));
  for (size_t i = 0; i < count; ++i) {
    to[i] = make(from[i]);
  }
  dst = FromElements<To>(to);
}

// An operation on 128 bits, in each lane. An upper lane has its own bits of the
// immediate: those from bit kImmBits on.
template <VecOp kOp, unsigned kImmBits = 0>
void InLanes(Wide& dst, const Wide& src, WideState& state) {
  VecState of_lane;
  of_lane.mxcsr = state.mxcsr;
  of_lane.imm = state.imm;
  of_lane.is_of_qemu = state.is_of_qemu;
  for (unsigned lane = 0; lane < state.lanes; ++lane) {
    of_lane.third = state.third[lane];
    kOp(dst[lane], src[lane], of_lane);
    of_lane.imm = static_cast<uint8_t>(of_lane.imm >> kImmBits);
  }
  state.mxcsr = of_lane.mxcsr;
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_WIDE_OP_H_
