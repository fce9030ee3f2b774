#ifndef CLEW_MACHINE_VECTOR_EVEX_COMPARE_H_
#define CLEW_MACHINE_VECTOR_EVEX_COMPARE_H_

#include "machine/vector/wide_op.h"

// Integer comparisons to an opmask register, named after their mnemonics (Intel
// SDM vol. 2). None reads or writes MXCSR.
//
// X(mnemonic, what holds of the elements whose bit is set, type of an element)
#define CLEW_EVEX_COMPARISONS(X)             \
  X("vpcmpb", HoldsByImm, int8_t)            \
  X("vpcmpw", HoldsByImm, int16_t)           \
  X("vpcmpd", HoldsByImm, int32_t)           \
  X("vpcmpq", HoldsByImm, int64_t)           \
  X("vpcmpub", HoldsByImm, uint8_t)          \
  X("vpcmpuw", HoldsByImm, uint16_t)         \
  X("vpcmpud", HoldsByImm, uint32_t)         \
  X("vpcmpuq", HoldsByImm, uint64_t)         \
  X("vpcmpeqb", AreEqual, uint8_t)           \
  X("vpcmpeqw", AreEqual, uint16_t)          \
  X("vpcmpeqd", AreEqual, uint32_t)          \
  X("vpcmpeqq", AreEqual, uint64_t)          \
  X("vpcmpgtb", FirstIsGreater, int8_t)      \
  X("vpcmpgtw", FirstIsGreater, int16_t)     \
  X("vpcmpgtd", FirstIsGreater, int32_t)     \
  X("vpcmpgtq", FirstIsGreater, int64_t)     \
  X("vptestmb", HaveCommonBits, uint8_t)     \
  X("vptestmw", HaveCommonBits, uint16_t)    \
  X("vptestmd", HaveCommonBits, uint32_t)    \
  X("vptestmq", HaveCommonBits, uint64_t)    \
  X("vptestnmb", HaveNoCommonBits, uint8_t)  \
  X("vptestnmw", HaveNoCommonBits, uint16_t) \
  X("vptestnmd", HaveNoCommonBits, uint32_t) \
  X("vptestnmq", HaveNoCommonBits, uint64_t)

namespace clew::machine {

// As a ToOpmaskOp. Only for the rows above.
template <class T>
uint64_t HoldsByImm(const Wide& first, const Wide& src, WideState& state);
template <class T>
uint64_t AreEqual(const Wide& first, const Wide& src, WideState& state);
template <class T>
uint64_t FirstIsGreater(const Wide& first, const Wide& src, WideState& state);
template <class T>
uint64_t HaveCommonBits(const Wide& first, const Wide& src, WideState& state);
template <class T>
uint64_t HaveNoCommonBits(const Wide& first, const Wide& src, WideState& state);

// For each byte of src, the bit that it names of the quadword of `first` at its
// place.
uint64_t Vpshufbitqmb(const Wide& first, const Wide& src, WideState& state);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_VECTOR_EVEX_COMPARE_H_
