#ifndef CLEW_MACHINE_SHADOW_DOMAIN_H_
#define CLEW_MACHINE_SHADOW_DOMAIN_H_

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "machine/cpu_access.h"
#include "machine/shadow.h"

namespace clew::machine {

// What a thread has besides its registers.
struct ShadowThread {
  ExprPool* pool = nullptr;
  ShadowMemory* memory = nullptr;
  ShadowObserver* observer = nullptr;
  const Insn* const* current = nullptr;
  std::array<const Expr*, 16> gpr = {};    // width 64
  std::array<const Expr*, 12> flags = {};  // by bit of rflags; width 1
  // By number and quadword; width 64.
  std::array<std::array<const Expr*, kVecQuads>, kVecRegisters> vec = {};
  Registers last;  // as the last Run left them
};

template <class U>
inline constexpr unsigned kExprBits = std::same_as<U, bool> ? 1 : 8 * sizeof(U);

// A value and, if it depends on something not known, its expression. The
// expression is never a constant.
template <class U>
struct Sym {
  U value{};
  const Expr* expr = nullptr;
};

// The domain of shadowed values; see Concrete for the meaning of each member.
struct Shadowed {
  template <class U>
  using V = Sym<U>;
  static constexpr bool kShadow = true;

  ShadowThread* thread = nullptr;

  template <class U>
  static Sym<U> Const(U value) {
    return {value, nullptr};
  }
  template <class U>
  static U Value(Sym<U> v) {
    return v.value;
  }
  template <class U>
  U Concretise(Sym<U> v) const {
    return Concretise(v, ConcretiseCause::kValue);
  }
  uint64_t ConcretiseAddress(Sym<uint64_t> v) const {
    return Concretise(v, ConcretiseCause::kAddress);
  }
  bool Decide(Sym<bool> condition) const {
    if (condition.expr != nullptr) [[unlikely]] {
      thread->observer->OnBranch(Ip(), condition.expr, condition.value);
    }
    return condition.value;
  }

  template <class U>
  Sym<U> Add(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Add(a.value, b.value), a, b, &ExprPool::Add);
  }
  template <class U>
  Sym<U> Sub(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Sub(a.value, b.value), a, b, &ExprPool::Sub);
  }
  template <class U>
  Sym<U> Mul(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Mul(a.value, b.value), a, b, &ExprPool::Mul);
  }
  template <class U>
  Sym<U> And(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::And(a.value, b.value), a, b, &ExprPool::And);
  }
  template <class U>
  Sym<U> Or(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Or(a.value, b.value), a, b, &ExprPool::Or);
  }
  template <class U>
  Sym<U> Xor(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Xor(a.value, b.value), a, b, &ExprPool::Xor);
  }
  template <class U>
  Sym<U> Shl(Sym<U> a, Sym<U> n) const {
    return Binary(Concrete::Shl(a.value, n.value), a, n, &ExprPool::Shl);
  }
  template <class U>
  Sym<U> Shr(Sym<U> a, Sym<U> n) const {
    return Binary(Concrete::Shr(a.value, n.value), a, n, &ExprPool::Lshr);
  }
  template <class U>
  Sym<U> Sar(Sym<U> a, Sym<U> n) const {
    return Binary(Concrete::Sar(a.value, n.value), a, n, &ExprPool::Ashr);
  }
  // REQUIRES (all four): the divisor's value is not 0; signed: nor -1.
  template <class U>
  Sym<U> Udiv(Sym<U> a, Sym<U> b) const {
    return Binary(static_cast<U>(a.value / b.value), a, b, &ExprPool::Udiv);
  }
  template <class U>
  Sym<U> Urem(Sym<U> a, Sym<U> b) const {
    return Binary(static_cast<U>(a.value % b.value), a, b, &ExprPool::Urem);
  }
  template <class U>
  Sym<U> Sdiv(Sym<U> a, Sym<U> b) const {
    const auto value =
        static_cast<Signed<U>>(a.value) / static_cast<Signed<U>>(b.value);
    return Binary(static_cast<U>(value), a, b, &ExprPool::Sdiv);
  }
  template <class U>
  Sym<U> Srem(Sym<U> a, Sym<U> b) const {
    const auto value =
        static_cast<Signed<U>>(a.value) % static_cast<Signed<U>>(b.value);
    return Binary(static_cast<U>(value), a, b, &ExprPool::Srem);
  }
  template <class U>
  Sym<U> Not(Sym<U> a) const {
    return Unary(Concrete::Not(a.value), a, &ExprPool::Not);
  }
  template <class U>
  Sym<U> Neg(Sym<U> a) const {
    return Unary(Concrete::Neg(a.value), a, &ExprPool::Neg);
  }
  template <class U>
  Sym<bool> Eq(Sym<U> a, Sym<U> b) const {
    return Binary(a.value == b.value, a, b, &ExprPool::Eq);
  }
  template <class U>
  Sym<bool> Ult(Sym<U> a, Sym<U> b) const {
    return Binary(a.value < b.value, a, b, &ExprPool::Ult);
  }
  template <class U>
  Sym<bool> Slt(Sym<U> a, Sym<U> b) const {
    return Binary(Concrete::Slt(a.value, b.value), a, b, &ExprPool::Slt);
  }
  template <class U>
  [[gnu::always_inline]] Sym<U> Ite(Sym<bool> condition, Sym<U> a,
                                    Sym<U> b) const {
    Sym<U> chosen = condition.value ? a : b;
    if (condition.expr != nullptr) [[unlikely]] {
      chosen.expr = IteOf(condition, a, b);
    }
    return chosen;
  }
  template <class To, class U>
  Sym<To> ZExt(Sym<U> a) const {
    return {static_cast<To>(a.value),
            a.expr == nullptr ? nullptr : pool().Zext(a.expr, kExprBits<To>)};
  }
  template <class To, class U>
  Sym<To> SExt(Sym<U> a) const {
    return {Concrete::SExt<To>(a.value),
            a.expr == nullptr ? nullptr : pool().Sext(a.expr, kExprBits<To>)};
  }
  template <class To, class U>
  Sym<To> Trunc(Sym<U> a) const {
    return {static_cast<To>(a.value), Part(a.expr, 0, kExprBits<To>)};
  }
  template <class U>
  Sym<bool> Bit(Sym<U> a, unsigned n) const {
    return {Concrete::Bit(a.value, n), Part(a.expr, n, 1)};
  }

  template <class U>
  Sym<U> GetReg(const Registers& regs, unsigned offset) const {
    return {Concrete::GetReg<U>(regs, offset),
            Part(thread->gpr[offset / 8], 8 * (offset % 8), kExprBits<U>)};
  }
  template <class U>
  void SetReg(Registers& regs, unsigned offset, Sym<U> v) const {
    const Expr*& place = thread->gpr[offset / 8];
    if (sizeof(U) >= 4) {
      place = v.expr == nullptr ? nullptr : pool().Zext(v.expr, 64);
    } else if (place != nullptr || v.expr != nullptr) {
      place = Insert(place, regs.gpr[offset / 8], 8 * (offset % 8), ExprOf(v));
    }
    Concrete::SetReg<U>(regs, offset, v.value);
  }
  Sym<bool> GetFlag(const Registers& regs, uint64_t bit) const {
    return {Concrete::GetFlag(regs, bit), FlagExpr(bit)};
  }
  void SetFlag(Registers& regs, uint64_t bit, Sym<bool> v) const {
    FlagExpr(bit) = v.expr;
    Concrete::SetFlag(regs, bit, v.value);
  }
  Sym<uint64_t> GetQuad(const Registers& regs, unsigned number,
                        unsigned i) const {
    return {regs.quad(number, i), thread->vec[number][i]};
  }
  void SetQuad(Registers& regs, unsigned number, unsigned i,
               Sym<uint64_t> v) const {
    thread->vec[number][i] = v.expr;
    regs.quad(number, i) = v.value;
  }

  template <class U, class Machine>
  Sym<U> AfterLoad(Machine& cpu, uint64_t addr, U value,
                   AccessKind kind) const {
    const Expr* loaded = thread->memory->Load(addr, sizeof(U), value);
    return {value, thread->observer->OnRead(
                       cpu.MakeAccess(addr, value, sizeof(U), kind), loaded)};
  }
  template <class U, class Machine>
  void AfterStore(Machine& cpu, uint64_t addr, Sym<U> v,
                  AccessKind kind) const {
    thread->memory->Store(addr, sizeof(U), v.expr);
    thread->observer->OnWrite(cpu.MakeAccess(addr, v.value, sizeof(U), kind),
                              v.expr);
    StoreInMirrors(cpu, addr, sizeof(U), v.value, v.expr);
  }
  // Lets the mirrors of what was stored have its expression, too.
  template <class Machine>
  void StoreInMirrors(Machine& cpu, uint64_t addr, uint32_t size_bytes,
                      uint64_t value, const Expr* expr) const {
    cpu.ForEachMirror(
        addr, size_bytes, [&](uint64_t at, uint64_t offset, uint64_t part) {
          const Expr* const stored =
              Part(expr, static_cast<unsigned>(8 * offset),
                   static_cast<unsigned>(8 * part));
          thread->memory->Store(at, static_cast<uint32_t>(part), stored);
          thread->observer->OnWrite(
              cpu.MakeAccess(at, BytesOf(value, offset, part), part,
                             AccessKind::kWrite),
              stored);
        });
  }
  // In pieces of 8, 4, 2, 1 bytes.
  template <class Machine>
  void AfterLoadBytes(Machine& cpu, uint64_t addr, std::span<std::byte> bytes,
                      AccessKind kind) const;
  template <class Machine>
  void AfterStoreBytes(Machine& cpu, uint64_t addr,
                       std::span<const std::byte> bytes, AccessKind kind) const;

 private:
  ExprPool& pool() const { return *thread->pool; }
  uint64_t Ip() const { return (*thread->current)->ip; }
  // A constant expression is not a shadow.
  static const Expr* Keep(const Expr* expr) {
    return expr->is_const() ? nullptr : expr;
  }
  template <class U>
  [[gnu::noinline]] const Expr* IteOf(Sym<bool> condition, Sym<U> a,
                                      Sym<U> b) const {
    return Keep(pool().Ite(condition.expr, ExprOf(a), ExprOf(b)));
  }
  template <class U>
  const Expr* ExprOf(Sym<U> v) const {
    return v.expr != nullptr ? v.expr
                             : pool().Const(uint64_t{v.value}, kExprBits<U>);
  }
  // Nearly every instruction finds plain values. The test for them is made
  // part of each handler and what follows otherwise is kept out of all: left to
  // itself, the compiler takes the whole for too large and calls it.
  template <class R, class U>
  [[gnu::always_inline]] Sym<R> Binary(
      R value, Sym<U> a, Sym<U> b,
      const Expr* (ExprPool::*op)(const Expr*, const Expr*)) const {
    if (a.expr == nullptr && b.expr == nullptr) [[likely]] {
      return {value, nullptr};
    }
    return {value, BinaryOf(a, b, op)};
  }
  template <class U>
  [[gnu::noinline]] const Expr* BinaryOf(
      Sym<U> a, Sym<U> b,
      const Expr* (ExprPool::*op)(const Expr*, const Expr*)) const {
    return Keep((pool().*op)(ExprOf(a), ExprOf(b)));
  }
  template <class U>
  Sym<U> Unary(U value, Sym<U> a,
               const Expr* (ExprPool::*op)(const Expr*)) const {
    return {value, a.expr == nullptr ? nullptr : (pool().*op)(a.expr)};
  }
  template <class U>
  U Concretise(Sym<U> v, ConcretiseCause cause) const {
    if (v.expr != nullptr) [[unlikely]] {
      thread->observer->OnConcretised(Ip(), v.expr, v.value, cause);
    }
    return v.value;
  }
  [[gnu::always_inline]] const Expr* Part(const Expr* expr, unsigned low,
                                          unsigned width) const {
    return expr == nullptr ? nullptr : PartOf(expr, low, width);
  }
  [[gnu::noinline]] const Expr* PartOf(const Expr* expr, unsigned low,
                                       unsigned width) const {
    return Keep(pool().Extract(expr, low, width));
  }
  // `part` in place of its bits from `low` on in a 64-bit value.
  [[gnu::noinline]] const Expr* Insert(const Expr* whole, uint64_t value,
                                       unsigned low, const Expr* part) const {
    if (whole == nullptr) {
      whole = pool().Const(value, 64);
    }
    const unsigned end = low + part->width;
    const Expr* result = part;
    if (low > 0) {
      result = pool().Concat(result, pool().Extract(whole, 0, low));
    }
    result = pool().Concat(pool().Extract(whole, end, 64 - end), result);
    return Keep(result);
  }
  const Expr*& FlagExpr(uint64_t bit) const {
    return thread->flags[static_cast<size_t>(std::countr_zero(bit))];
  }
};

template <class Machine>
void Shadowed::AfterLoadBytes(Machine& cpu, uint64_t addr,
                              std::span<std::byte> bytes,
                              AccessKind kind) const {
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = std::bit_floor(std::min<size_t>(8, bytes.size() - i));
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + i, size);
    const auto size_bytes = static_cast<uint32_t>(size);
    const Expr* loaded = thread->memory->Load(addr + i, size_bytes, value);
    const Expr* expr = thread->observer->OnRead(
        cpu.MakeAccess(addr + i, value, size, kind), loaded);
    Concretise(Sym<uint64_t>{value, expr}, ConcretiseCause::kValue);
    i += size;
  }
}

template <class Machine>
void Shadowed::AfterStoreBytes(Machine& cpu, uint64_t addr,
                               std::span<const std::byte> bytes,
                               AccessKind kind) const {
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = std::bit_floor(std::min<size_t>(8, bytes.size() - i));
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + i, size);
    thread->memory->Store(addr + i, static_cast<uint32_t>(size), nullptr);
    thread->observer->OnWrite(cpu.MakeAccess(addr + i, value, size, kind),
                              nullptr);
    StoreInMirrors(cpu, addr + i, static_cast<uint32_t>(size), value, nullptr);
    i += size;
  }
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_SHADOW_DOMAIN_H_
