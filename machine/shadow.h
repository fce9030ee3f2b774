#ifndef CLEW_MACHINE_SHADOW_H_
#define CLEW_MACHINE_SHADOW_H_

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "constraints/expr.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/registers.h"

namespace clew::machine {

using constraints::Expr;
using constraints::ExprPool;

// Which bytes of memory have an expression besides their value. Sparse: costs
// about 40 bytes a shadowed byte. Not thread-safe.
class ShadowMemory {
 public:
  explicit ShadowMemory(ExprPool& pool) : pool_(&pool) {}

  // Returns the expression of the little-endian integer of `size_bytes` (1, 2,
  // 4, 8) at `addr`, whose value is `value`; nullptr if no byte has one.
  const Expr* Load(uint64_t addr, uint32_t size_bytes, uint64_t value) const;
  // Gives the bytes the expression `expr`, of width 8 * size_bytes; with
  // nullptr they are plain from now on.
  void Store(uint64_t addr, uint32_t size_bytes, const Expr* expr);
  // Makes the bytes plain, after a write that did not come from the CPU (a
  // system call, Memory::Poke).
  void Forget(uint64_t addr, uint64_t size_bytes);

 private:
  // Byte `index` of `expr`, counted from the least significant.
  struct Cell {
    const Expr* expr = nullptr;
    uint32_t index = 0;
  };
  using PageShadow = std::unordered_map<uint32_t, Cell>;
  const Cell* Find(uint64_t addr) const;
  void Set(uint64_t addr, Cell cell);
  void Clear(uint64_t addr);
  void ForgetByPages(uint64_t begin, uint64_t end);
  // Returns nullptr unless all bytes are one expression, whole and in order.
  const Expr* Whole(uint64_t addr, uint32_t size_bytes) const;

  ExprPool* pool_;
  std::unordered_map<uint64_t, PageShadow> pages_;
  size_t shadowed_bytes_ = 0;
};

// Why a shadow was given up: the machine went on with the plain value, so that
// what follows holds only where the expression has that value.
enum class ConcretiseCause : uint8_t {
  kAddress,  // of an access, or the target of a jump
  kValue,    // an instruction without a symbolic definition (SSE, x87, shift
             // counts, bit scans, ...)
};

// Sees what matters symbolically. Accesses are as AccessObserver sees them,
// except that those of 16 and more bytes come in pieces of at most 8.
class ShadowObserver {
 public:
  virtual ~ShadowObserver() = default;
  // A read, or the reading half of an atomic read-modify-write. `loaded` is
  // the expression that memory has, or nullptr. Returns the expression that the
  // value shall have from now on: `loaded`, a fresh variable, or nullptr.
  // Its width is 8 * access.size_bytes.
  virtual const Expr* OnRead(const ObservedAccess& access,
                             const Expr* loaded) = 0;
  // A write, or the writing half of an atomic one; access.value is what is
  // written. `stored` may be nullptr.
  virtual void OnWrite(const ObservedAccess& access, const Expr* stored) = 0;
  // A decision that depends on an expression of width 1: a conditional branch,
  // or a case distinction within an instruction (end of a REP, division).
  virtual void OnBranch(uint64_t ip, const Expr* condition, bool taken) = 0;
  virtual void OnConcretised(uint64_t ip, const Expr* expr, uint64_t value,
                             ConcretiseCause cause) = 0;
};

struct Shadowed;
struct ShadowThread;

// As CodeCache (machine/cpu.h), for the shadow domain.
class ShadowCodeCache {
 public:
  ShadowCodeCache() : ShadowCodeCache(x86::kX86_64V2) {}
  explicit ShadowCodeCache(x86::FeatureSet features);
  ~ShadowCodeCache();
  ShadowCodeCache(ShadowCodeCache&&) noexcept;
  ShadowCodeCache& operator=(ShadowCodeCache&&) noexcept;

 private:
  friend class ShadowMachine;
  std::unique_ptr<BlockCache<Shadowed>> blocks_;
};

// One thread of x86-64 user mode whose values may carry an expression. Plain
// values are exactly those of Machine.
class ShadowMachine {
 public:
  // All are borrowed and must outlive the machine. Threads share memory, shadow
  // and cache. Between calls of Run the registers may be changed; a general
  // register that has another value then has lost its expression.
  ShadowMachine(Registers& registers, Memory& memory, ShadowMemory& shadow,
                ShadowCodeCache& code, ExprPool& pool,
                ShadowObserver& observer);
  ~ShadowMachine();
  ShadowMachine(ShadowMachine&&) noexcept;

  // As in Machine.
  Stop Run(uint64_t max_insns);
  void CompleteInsn(const InsnInput& input);

  // Width 64, or nullptr. `number` is a clew::Gpr.
  const Expr* GprShadow(unsigned number) const;
  // For a register that was set to a value which happens to be the old one.
  void SetGprShadow(unsigned number, const Expr* expr);
  // Width 1; `bit` is one of kFlagsArithmetic.
  const Expr* FlagShadow(uint64_t bit) const;
  void SetFlagShadow(uint64_t bit, const Expr* expr);
  // Takes over the expressions of all registers whose values are the parent's:
  // for a thread that was created with a copy of them.
  void InheritFrom(const ShadowMachine& parent);

 private:
  std::unique_ptr<ShadowThread> thread_;
  std::unique_ptr<Cpu<Shadowed>> cpu_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_SHADOW_H_
