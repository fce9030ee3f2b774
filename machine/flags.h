#ifndef CLEW_MACHINE_FLAGS_H_
#define CLEW_MACHINE_FLAGS_H_

#include <cstdint>

#include "machine/domain.h"
#include "machine/registers.h"

namespace clew::machine {

// Arithmetic flags are lazy: an instruction notes what it computed from, and a
// flag is worked out when something asks for it.
enum class FlagSource : uint8_t {
  kStored,  // all six are in rflags
  kAdd,     // of r = a + b
  kAdc,     // of r = a + b + carry; the carry shows in r
  kSub,     // of r = a - b
  kSbb,     // of r = a - b - borrow
  kLogic,   // zero, sign, parity of r; carry, overflow and adjust are clear
  kInc,     // as kAdd with b = 1, but carry is in rflags
  kDec,     // as kSub with b = 1, but carry is in rflags
  kResult,  // zero, sign, parity of r; carry, overflow and adjust in rflags
};

// The flags of one thread. U below is the width of the operation.
template <class D>
class Flags {
 public:
  template <class U>
  using V = typename D::template V<U>;
  using Word = V<uint64_t>;
  using Bool = V<bool>;

  Flags(D& d, Registers& regs) : d_(d), regs_(regs) {}

  // The last operation, operands zero-extended.
  template <class U>
  void Set(FlagSource source, V<U> a, V<U> b, V<U> r) {
    source_ = source;
    size_bytes_ = sizeof(U);
    a_ = d_.template ZExt<uint64_t, U>(a);
    b_ = d_.template ZExt<uint64_t, U>(b);
    r_ = d_.template ZExt<uint64_t, U>(r);
  }
  template <class U>
  void SetLogic(V<U> r) {
    source_ = FlagSource::kLogic;
    size_bytes_ = sizeof(U);
    r_ = d_.template ZExt<uint64_t, U>(r);
  }
  // INC and DEC: keeps carry.
  template <class U>
  void SetKeepingCarry(FlagSource source, V<U> a, V<U> r) {
    StoreCarry();
    Set<U>(source, a, d_.Const(U{1}), r);
  }
  // Zero, sign and parity of r, the others as given.
  template <class U>
  void SetResult(V<U> r, Bool carry, Bool overflow, Bool adjust) {
    d_.SetFlag(regs_, kFlagCarry, carry);
    d_.SetFlag(regs_, kFlagOverflow, overflow);
    d_.SetFlag(regs_, kFlagAdjust, adjust);
    source_ = FlagSource::kResult;
    size_bytes_ = sizeof(U);
    r_ = d_.template ZExt<uint64_t, U>(r);
  }
  // One flag, the others stay. `bit` is kFlagCarry etc.
  void SetOne(uint64_t bit, Bool value) {
    StoreAll();
    d_.SetFlag(regs_, bit, value);
  }
  // All six at once, for instructions that define each by a rule of its own
  // (COMISD, PTEST, ...). Bits of kFlagsArithmetic.
  void SetAll(uint64_t arithmetic_flags) {
    source_ = FlagSource::kStored;
    for (uint64_t bit : kBits) {
      d_.SetFlag(regs_, bit, d_.Const((arithmetic_flags & bit) != 0));
    }
  }

  Bool Carry() {
    return Sized([&]<class U>() { return CarryOf<U>(); });
  }
  Bool Zero() {
    return Sized([&]<class U>() { return ZeroOf<U>(); });
  }
  Bool Sign() {
    return Sized([&]<class U>() { return SignOf<U>(); });
  }
  Bool Overflow() {
    return Sized([&]<class U>() { return OverflowOf<U>(); });
  }
  Bool Parity() { return ParityOf(); }

  // The condition of Jcc, SETcc, CMOVcc: the low four bits of the opcode.
  template <unsigned kCode>
  Bool Condition() {
    const Bool plain = Plain<(kCode >> 1)>();
    if constexpr ((kCode & 1) != 0) {
      return d_.Not(plain);
    } else {
      return plain;
    }
  }

  // Makes rflags architectural.
  void StoreAll() {
    if (source_ != FlagSource::kStored) {
      Sized([&]<class U>() {
        StoreSized<U>();
        return 0;
      });
    }
  }
  // The same, and no flag keeps a shadow.
  void ConcretiseAll() {
    StoreAll();
    for (uint64_t bit : kBits) {
      const bool value = d_.Concretise(d_.GetFlag(regs_, bit));
      d_.SetFlag(regs_, bit, d_.Const(value));
    }
  }
  // rflags was changed from outside.
  void Reload() { source_ = FlagSource::kStored; }

 private:
  static constexpr uint64_t kBits[] = {kFlagCarry, kFlagParity, kFlagAdjust,
                                       kFlagZero,  kFlagSign,   kFlagOverflow};

  template <class F>
  auto Sized(F f) {
    switch (size_bytes_) {
      case 1:
        return f.template operator()<uint8_t>();
      case 2:
        return f.template operator()<uint16_t>();
      case 4:
        return f.template operator()<uint32_t>();
      default:
        return f.template operator()<uint64_t>();
    }
  }
  template <class U>
  V<U> A() {
    return d_.template Trunc<U, uint64_t>(a_);
  }
  template <class U>
  V<U> B() {
    return d_.template Trunc<U, uint64_t>(b_);
  }
  template <class U>
  V<U> R() {
    return d_.template Trunc<U, uint64_t>(r_);
  }
  Bool Stored(uint64_t bit) { return d_.GetFlag(regs_, bit); }
  template <class U>
  Bool Top(V<U> v) {
    return d_.template Bit<U>(v, 8 * sizeof(U) - 1);
  }

  template <class U>
  Bool CarryOf() {
    switch (source_) {
      case FlagSource::kAdd:
        return d_.template Ult<U>(R<U>(), A<U>());
      case FlagSource::kSub:
        return d_.template Ult<U>(A<U>(), B<U>());
      case FlagSource::kAdc:
        return Top<U>(Majority<U>(A<U>(), B<U>(), d_.template Not<U>(R<U>())));
      case FlagSource::kSbb:
        return Top<U>(Majority<U>(d_.template Not<U>(A<U>()), B<U>(), R<U>()));
      case FlagSource::kLogic:
        return d_.Const(false);
      default:
        return Stored(kFlagCarry);
    }
  }
  template <class U>
  V<U> Majority(V<U> a, V<U> b, V<U> c) {
    return d_.template Or<U>(d_.template And<U>(a, b),
                             d_.template And<U>(d_.template Or<U>(a, b), c));
  }
  template <class U>
  Bool ZeroOf() {
    switch (source_) {
      case FlagSource::kStored:
        return Stored(kFlagZero);
      case FlagSource::kSub:
        return d_.template Eq<U>(A<U>(), B<U>());
      default:
        return d_.template Eq<U>(R<U>(), d_.Const(U{0}));
    }
  }
  template <class U>
  Bool SignOf() {
    return source_ == FlagSource::kStored ? Stored(kFlagSign) : Top<U>(R<U>());
  }
  template <class U>
  Bool OverflowOf() {
    switch (source_) {
      case FlagSource::kAdd:
      case FlagSource::kAdc:
      case FlagSource::kInc:  // operands agree in sign, the result does not
        return Top<U>(d_.template And<U>(d_.template Xor<U>(A<U>(), R<U>()),
                                         d_.template Xor<U>(B<U>(), R<U>())));
      case FlagSource::kSub:
      case FlagSource::kSbb:
      case FlagSource::kDec:
        return Top<U>(d_.template And<U>(d_.template Xor<U>(A<U>(), B<U>()),
                                         d_.template Xor<U>(A<U>(), R<U>())));
      case FlagSource::kLogic:
        return d_.Const(false);
      default:
        return Stored(kFlagOverflow);
    }
  }
  Bool AdjustOf() {
    switch (source_) {
      case FlagSource::kStored:
      case FlagSource::kResult:
        return Stored(kFlagAdjust);
      case FlagSource::kLogic:
        return d_.Const(false);
      default: {
        using U = uint8_t;
        const V<U> ab = d_.template Xor<U>(A<U>(), B<U>());
        return d_.template Bit<U>(d_.template Xor<U>(ab, R<U>()), 4);
      }
    }
  }
  // Set if the low byte of the result has an even number of ones.
  Bool ParityOf() {
    if (source_ == FlagSource::kStored) {
      return Stored(kFlagParity);
    }
    using U = uint8_t;
    V<U> v = R<U>();
    for (const U n : {U{4}, U{2}, U{1}}) {
      v = d_.template Xor<U>(v, d_.template Shr<U>(v, d_.Const(n)));
    }
    return d_.Not(d_.template Bit<U>(v, 0));
  }

  template <unsigned kPair>
  Bool Plain() {
    if constexpr (kPair == 0) {
      return Overflow();
    } else if constexpr (kPair == 1) {
      return Carry();
    } else if constexpr (kPair == 2) {
      return Zero();
    } else if constexpr (kPair == 3) {
      return BelowOrEqual();
    } else if constexpr (kPair == 4) {
      return Sign();
    } else if constexpr (kPair == 5) {
      return Parity();
    } else if constexpr (kPair == 6) {
      return Less();
    } else {
      return LessOrEqual();
    }
  }
  Bool BelowOrEqual() {
    if (source_ == FlagSource::kSub) {
      return d_.Not(
          Sized([&]<class U>() { return d_.template Ult<U>(B<U>(), A<U>()); }));
    }
    return d_.template Or<bool>(Carry(), Zero());
  }
  Bool Less() {
    if (source_ == FlagSource::kSub) {
      return Sized(
          [&]<class U>() { return d_.template Slt<U>(A<U>(), B<U>()); });
    }
    return d_.template Xor<bool>(Sign(), Overflow());
  }
  Bool LessOrEqual() {
    if (source_ == FlagSource::kSub) {
      return d_.Not(
          Sized([&]<class U>() { return d_.template Slt<U>(B<U>(), A<U>()); }));
    }
    return d_.template Or<bool>(Less(), Zero());
  }

  void StoreCarry() {
    if (source_ != FlagSource::kStored && source_ != FlagSource::kInc &&
        source_ != FlagSource::kDec && source_ != FlagSource::kResult) {
      d_.SetFlag(regs_, kFlagCarry, Carry());
    }
  }
  template <class U>
  void StoreSized() {
    const Bool carry = CarryOf<U>();
    const Bool overflow = OverflowOf<U>();
    const Bool adjust = AdjustOf();
    d_.SetFlag(regs_, kFlagCarry, carry);
    d_.SetFlag(regs_, kFlagOverflow, overflow);
    d_.SetFlag(regs_, kFlagAdjust, adjust);
    d_.SetFlag(regs_, kFlagZero, ZeroOf<U>());
    d_.SetFlag(regs_, kFlagSign, SignOf<U>());
    d_.SetFlag(regs_, kFlagParity, ParityOf());
    source_ = FlagSource::kStored;
  }

  D& d_;
  Registers& regs_;
  FlagSource source_ = FlagSource::kStored;
  uint8_t size_bytes_ = 8;
  Word a_{};
  Word b_{};
  Word r_{};
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_FLAGS_H_
