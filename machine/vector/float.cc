#include "machine/vector/float.h"

#include <array>
#include <cstring>
#include <utility>

#include "machine/vector/host_op.h"

namespace clew::machine {

CLEW_VECTOR_FLOAT_OPS(CLEW_HOST_FLOAT_OP)

namespace of_host {
CLEW_VECTOR_APPROXIMATE_OPS(CLEW_HOST_INTEGER_OP)
}  // namespace of_host

namespace {

// One host instruction for each value of an immediate, chosen at run time.
#define CLEW_HOST_FLOAT_IMM_OP(Name, mnemonic)                             \
  template <int kImm>                                                      \
  void Name(Vec128& dst, const Vec128& src, VecState& state) {             \
    __m128i d = ToHost(dst);                                               \
    uint32_t guest = HostMxcsr(state.mxcsr);                               \
    uint32_t host;                                                         \
    __asm__ volatile(CLEW_UNDER_MXCSR(mnemonic " %[imm], %[s], %[d]")      \
                     : [d] "+x"(d), [guest] "+m"(guest), [host] "=m"(host) \
                     : [s] "x"(ToHost(src)), [imm] "i"(kImm));             \
    state.mxcsr |= guest & kMxcsrFlags;                                    \
    FromHost(d, dst);                                                      \
  }

CLEW_HOST_FLOAT_IMM_OP(CmppsImm, "cmpps")
CLEW_HOST_FLOAT_IMM_OP(CmppdImm, "cmppd")
CLEW_HOST_FLOAT_IMM_OP(CmpssImm, "cmpss")
CLEW_HOST_FLOAT_IMM_OP(CmpsdImm, "cmpsd")
CLEW_HOST_FLOAT_IMM_OP(RoundpsImm, "roundps")
CLEW_HOST_FLOAT_IMM_OP(RoundpdImm, "roundpd")
CLEW_HOST_FLOAT_IMM_OP(RoundssImm, "roundss")
CLEW_HOST_FLOAT_IMM_OP(RoundsdImm, "roundsd")
CLEW_HOST_FLOAT_IMM_OP(DppsImm, "dpps")
CLEW_HOST_FLOAT_IMM_OP(DppdImm, "dppd")

// The immediates that differ in effect: three bits of a comparison (SDM vol. 2,
// CMPPS, legacy encoding), four of a rounding.
#define CLEW_BY_IMM(Name, bits)                              \
  [&]<int... kImms>(std::integer_sequence<int, kImms...>) {  \
    static constexpr VecOp kOps[] = {Name<kImms>...};        \
    kOps[state.imm & ((1u << (bits)) - 1)](dst, src, state); \
  }(std::make_integer_sequence<int, 1 << (bits)>())

// Runs `op` and forgets the flags it raised.
void WithoutFlags(VecOp op, Vec128& dst, const Vec128& src, VecState& state) {
  const uint32_t before = state.mxcsr;
  op(dst, src, state);
  state.mxcsr = before;
}

// How two numbers stand to each other.
constexpr uint8_t kLess = 1;
constexpr uint8_t kEqual = 2;
constexpr uint8_t kGreater = 4;
constexpr uint8_t kUnordered = 8;
constexpr uint8_t kAny = kLess | kEqual | kGreater | kUnordered;

// The relations for which a predicate of VCMPPS and its kin is true, by its low
// four bits (SDM vol. 2, "CMPPS", "Comparison Predicate for CMPPD and CMPPS
// Instructions"). Bit 4 changes only which NaNs raise an exception.
constexpr std::array<uint8_t, 16> kTrueFor = {
    kEqual,                 // EQ_OQ
    kLess,                  // LT_OS
    kLess | kEqual,         // LE_OS
    kUnordered,             // UNORD_Q
    kAny & ~kEqual,         // NEQ_UQ
    kAny & ~kLess,          // NLT_US
    kGreater | kUnordered,  // NLE_US
    kAny & ~kUnordered,     // ORD_Q
    kEqual | kUnordered,    // EQ_UQ
    kLess | kUnordered,     // NGE_US
    kAny & ~kGreater,       // NGT_US
    0,                      // FALSE_OQ
    kLess | kGreater,       // NEQ_OQ
    kEqual | kGreater,      // GE_OS
    kGreater,               // GT_OS
    kAny,                   // TRUE_UQ
};
// Of them, those that raise an exception for quiet NaNs too: the ones with S.
constexpr unsigned kSignalling = 0x6666;

// The comparisons of which all 32 are made. All three raise the same exceptions
// but for quiet NaNs, for which only `less` raises one.
struct HostComparisons {
  VecOp equal;
  VecOp less;
  VecOp unordered;
};

// The lowest kBytes of dst = those of the comparison by state.imm.
template <size_t kBytes>
void CompareBy(const HostComparisons& host, Vec128& dst, const Vec128& src,
               VecState& state) {
  const uint8_t relations = kTrueFor[state.imm & 15];
  const bool signals = ((kSignalling >> (state.imm & 15)) & 1) !=
                       static_cast<unsigned>((state.imm >> 4) & 1);
  Vec128 raised = dst;
  (signals ? host.less : host.equal)(raised, src, state);
  Vec128 equal = dst;
  Vec128 less = dst;
  Vec128 unordered = dst;
  WithoutFlags(host.equal, equal, src, state);
  WithoutFlags(host.less, less, src, state);
  WithoutFlags(host.unordered, unordered, src, state);
  const auto if_true_for = [&](uint8_t relation, uint64_t elements) {
    return (relations & relation) != 0 ? elements : 0;
  };
  Vec128 result;
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t greater = ~(equal.q[i] | less.q[i] | unordered.q[i]);
    result.q[i] = if_true_for(kEqual, equal.q[i]) |
                  if_true_for(kLess, less.q[i]) |
                  if_true_for(kUnordered, unordered.q[i]) |
                  if_true_for(kGreater, greater);
  }
  std::memcpy(dst.q.data(), result.q.data(), kBytes);
}

constexpr uint64_t kFourOnes = 0x3f8000003f800000;  // 1.0f, 1.0f

void Reciprocal(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 result = {{kFourOnes, kFourOnes}};
  WithoutFlags(Divps, result, src, state);
  dst = result;
}

void ReciprocalRoot(Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 root;
  WithoutFlags(Sqrtps, root, src, state);
  Reciprocal(dst, root, state);
}

// The lowest element of op(src) into dst. Other elements of src are not looked
// at.
void LowestElement(VecOp op, Vec128& dst, const Vec128& src, VecState& state) {
  Vec128 result;
  op(result, src, state);
  dst.q[0] = (dst.q[0] & ~0xffffffffull) | (result.q[0] & 0xffffffffull);
}

}  // namespace

void Cmpps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmppsImm, 3);
}

void Cmppd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmppdImm, 3);
}

void Cmpss(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmpssImm, 3);
}

void Cmpsd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(CmpsdImm, 3);
}

void Vcmpps(Vec128& dst, const Vec128& src, VecState& state) {
  CompareBy<16>({CmppsImm<0>, CmppsImm<1>, CmppsImm<3>}, dst, src, state);
}

void Vcmppd(Vec128& dst, const Vec128& src, VecState& state) {
  CompareBy<16>({CmppdImm<0>, CmppdImm<1>, CmppdImm<3>}, dst, src, state);
}

void Vcmpss(Vec128& dst, const Vec128& src, VecState& state) {
  CompareBy<4>({CmpssImm<0>, CmpssImm<1>, CmpssImm<3>}, dst, src, state);
}

void Vcmpsd(Vec128& dst, const Vec128& src, VecState& state) {
  CompareBy<8>({CmpsdImm<0>, CmpsdImm<1>, CmpsdImm<3>}, dst, src, state);
}

void Roundps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundpsImm, 4);
}

void Roundpd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundpdImm, 4);
}

void Roundss(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundssImm, 4);
}

void Roundsd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(RoundsdImm, 4);
}

void Dpps(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(DppsImm, 8);
}

void Dppd(Vec128& dst, const Vec128& src, VecState& state) {
  CLEW_BY_IMM(DppdImm, 8);
}

void Rcpps(Vec128& dst, const Vec128& src, VecState& state) {
  (state.is_of_qemu ? Reciprocal : of_host::Rcpps)(dst, src, state);
}

void Rcpss(Vec128& dst, const Vec128& src, VecState& state) {
  if (!state.is_of_qemu) {
    return of_host::Rcpss(dst, src, state);
  }
  LowestElement(Reciprocal, dst, src, state);
}

void Rsqrtps(Vec128& dst, const Vec128& src, VecState& state) {
  (state.is_of_qemu ? ReciprocalRoot : of_host::Rsqrtps)(dst, src, state);
}

void Rsqrtss(Vec128& dst, const Vec128& src, VecState& state) {
  if (!state.is_of_qemu) {
    return of_host::Rsqrtss(dst, src, state);
  }
  LowestElement(ReciprocalRoot, dst, src, state);
}

}  // namespace clew::machine
