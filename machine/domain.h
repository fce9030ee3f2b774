#ifndef CLEW_MACHINE_DOMAIN_H_
#define CLEW_MACHINE_DOMAIN_H_

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "common/access.h"
#include "machine/registers.h"

namespace clew::machine {

// Signed counterpart, and what arithmetic is done in so that small types do
// not overflow as int.
template <class U>
using Signed = std::make_signed_t<U>;

// The domain of plain values: V<U> is U. Shadowed (machine/shadow_domain.h)
// has the same members over values that carry an expression. Instructions say
// d.Add(a, b) and mean both.
//
// U is uint8_t, uint16_t, uint32_t, uint64_t; truth values are V<bool>.
// Shift counts are of the operands' width; shifting by the width or more gives
// 0 (or the sign).
struct Concrete {
  template <class U>
  using V = U;
  static constexpr bool kShadow = false;

  template <class U>
  static U Const(U value) {
    return value;
  }
  // The plain value, for what does not depend on the shadow.
  template <class U>
  static U Value(U value) {
    return value;
  }
  // The plain value, where the shadow has to be given up: reported there.
  template <class U>
  static U Concretise(U value) {
    return value;
  }
  template <class U>
  static U Add(U a, U b) {
    return static_cast<U>(a + b);
  }
  template <class U>
  static U Sub(U a, U b) {
    return static_cast<U>(a - b);
  }
  template <class U>
  static U Mul(U a, U b) {
    return static_cast<U>(uint64_t{a} * uint64_t{b});
  }
  template <class U>
  static U And(U a, U b) {
    return static_cast<U>(a & b);
  }
  template <class U>
  static U Or(U a, U b) {
    return static_cast<U>(a | b);
  }
  template <class U>
  static U Xor(U a, U b) {
    return static_cast<U>(a ^ b);
  }
  template <class U>
  static U Not(U a) {
    if constexpr (std::same_as<U, bool>) {
      return !a;
    } else {
      return static_cast<U>(~a);
    }
  }
  template <class U>
  static U Neg(U a) {
    return static_cast<U>(U{0} - a);
  }
  template <class U>
  static U Shl(U a, U count) {
    return count < kBits<U> ? static_cast<U>(uint64_t{a} << count) : U{0};
  }
  template <class U>
  static U Shr(U a, U count) {
    return count < kBits<U> ? static_cast<U>(a >> count) : U{0};
  }
  template <class U>
  static U Sar(U a, U count) {
    const unsigned n =
        count < kBits<U> ? static_cast<unsigned>(count) : kBits<U> - 1;
    return static_cast<U>(static_cast<Signed<U>>(a) >> n);
  }
  template <class U>
  static bool Eq(U a, U b) {
    return a == b;
  }
  template <class U>
  static bool Ult(U a, U b) {
    return a < b;
  }
  template <class U>
  static bool Slt(U a, U b) {
    return static_cast<Signed<U>>(a) < static_cast<Signed<U>>(b);
  }
  template <class U>
  static U Ite(bool condition, U a, U b) {
    return condition ? a : b;
  }
  template <class To, class U>
  static To ZExt(U a) {
    return static_cast<To>(a);
  }
  template <class To, class U>
  static To SExt(U a) {
    return static_cast<To>(static_cast<Signed<To>>(static_cast<Signed<U>>(a)));
  }
  template <class To, class U>
  static To Trunc(U a) {
    return static_cast<To>(a);
  }
  // Bit `n` as a truth value.
  template <class U>
  static bool Bit(U a, unsigned n) {
    return (a >> n & 1) != 0;
  }

  template <class U>
  static constexpr unsigned kBits = 8 * sizeof(U);

  // Storage. `offset` is Operand::reg.
  template <class U>
  static U GetReg(const Registers& regs, unsigned offset) {
    U value;
    std::memcpy(&value, reinterpret_cast<const char*>(&regs.gpr) + offset,
                sizeof(U));
    return value;
  }
  // A 32-bit write clears the upper half, as in 64-bit mode.
  template <class U>
  static void SetReg(Registers& regs, unsigned offset, U value) {
    if constexpr (sizeof(U) == 4) {
      SetReg<uint64_t>(regs, offset, value);
    } else {
      std::memcpy(reinterpret_cast<char*>(&regs.gpr) + offset, &value,
                  sizeof(U));
    }
  }
  // `bit` is one bit of rflags.
  static bool GetFlag(const Registers& regs, uint64_t bit) {
    return (regs.rflags & bit) != 0;
  }
  static void SetFlag(Registers& regs, uint64_t bit, bool value) {
    regs.rflags = (regs.rflags & ~bit) | (value ? bit : 0);
  }
  // Quadword `i` of a vector register, as Registers::quad counts them.
  static uint64_t GetQuad(const Registers& regs, unsigned number, unsigned i) {
    return regs.quad(number, i);
  }
  static void SetQuad(Registers& regs, unsigned number, unsigned i,
                      uint64_t value) {
    regs.quad(number, i) = value;
  }

  // Where the machine meets the shadow; nothing to do here.
  static uint64_t ConcretiseAddress(uint64_t addr) { return addr; }
  static bool Decide(bool condition) { return condition; }
  template <class U, class Machine>
  static U AfterLoad(Machine&, uint64_t, U value, AccessKind) {
    return value;
  }
  template <class U, class Machine>
  static void AfterStore(Machine&, uint64_t, U, AccessKind) {}
  template <class Machine>
  static void AfterLoadBytes(Machine&, uint64_t, std::span<std::byte>,
                             AccessKind) {}
  template <class Machine>
  static void AfterStoreBytes(Machine&, uint64_t, std::span<const std::byte>,
                              AccessKind) {}
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_DOMAIN_H_
