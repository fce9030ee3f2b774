#ifndef CLEW_MACHINE_CPU_CORE_H_
#define CLEW_MACHINE_CPU_CORE_H_

#include <array>
#include <cstdint>
#include <span>

#include "machine/cpu.h"
#include "machine/domain.h"
#include "machine/flags.h"
#include "machine/insn.h"
#include "machine/insn/x87_stack.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/store_buffer.h"

namespace clew::machine {

// Returns `size_bytes` bytes of an integer from `offset` on; 0 behind its end.
inline uint64_t BytesOf(uint64_t value, uint64_t offset, uint64_t size_bytes) {
  if (offset >= sizeof(value)) {
    return 0;
  }
  value >>= 8 * offset;
  return size_bytes >= sizeof(value)
             ? value
             : value & ((uint64_t{1} << (8 * size_bytes)) - 1);
}

// Why the run loop leaves a block early.
enum class Signal : uint8_t {
  kNone,
  // The instruction retired:
  kReblock,  // code changed: look the next instruction up again
  kObserver,
  kSyscall,
  kBreakpoint,
  // It did not:
  kFault,
  kNondeterministic,
  kDrain,
  kUnsupported,
};

template <class D>
struct Op;
template <class D>
struct Block;
template <class D>
class BlockCache;

// One thread's state and everything handlers use. D is Concrete or Shadowed.
// Families see the public part up to the line; insn.h says how to add one. Who
// calls it includes cpu_access.h, which has its bodies.
template <class D>
class Cpu {
 public:
  template <class U>
  using V = typename D::template V<U>;

  Cpu(Registers& regs, Memory& memory, BlockCache<D>& code, D domain = D())
      : d_(domain),
        regs_(regs),
        memory_(memory),
        code_(code),
        flags_(d_, regs) {}
  Cpu(const Cpu&) = delete;
  Cpu& operator=(const Cpu&) = delete;

  D& d() { return d_; }
  Registers& regs() { return regs_; }
  // What the CPU has.
  x86::FeatureSet features() const;
  Flags<D>& flags() { return flags_; }

  // Returns true once this instruction has faulted: change nothing more.
  bool faulted() const { return signal_ >= Signal::kFault; }
  void Raise(FaultKind kind, uint64_t addr = 0, bool write = false) {
    if (!faulted()) {
      signal_ = Signal::kFault;
      fault_ = Fault{kind, addr, write};
    }
  }
  // Stops before this instruction retires.
  void StopUnsupported() { signal_ = Signal::kUnsupported; }
  void StopNondeterministic() { signal_ = Signal::kNondeterministic; }
  void StopSyscall() { signal_ = Signal::kSyscall; }
  void StopBreakpoint() { signal_ = Signal::kBreakpoint; }

  // General registers. `offset` is Operand::reg, or 8 * clew::Gpr.
  template <class U>
  V<U> GetReg(unsigned offset) {
    return d_.template GetReg<U>(regs_, offset);
  }
  template <class U>
  void SetReg(unsigned offset, V<U> value) {
    d_.template SetReg<U>(regs_, offset, value);
  }

  // Returns the address of the memory operand, segment base included.
  uint64_t Address(const Insn& insn) {
    return LinearAddress(insn, Offset(insn));
  }
  // Returns the address without segment base (LEA), 64 bits.
  V<uint64_t> Offset(const Insn& insn);
  uint64_t LinearAddress(const Insn& insn, V<uint64_t> offset);

  // Explicit operands of any kind: general register, immediate, memory.
  // Read returns 0 after a fault; Write does nothing then.
  template <class U>
  V<U> Read(const Insn& insn, const Operand& operand);
  template <class U>
  void Write(const Insn& insn, const Operand& operand, V<U> value);

  // Access memory as integers: one access each. On a fault these raise it; Load
  // then returns 0 and Store false.
  template <class U>
  V<U> Load(uint64_t addr);
  template <class U>
  bool Store(uint64_t addr, V<U> value);
  // An atomic read-modify-write, one access: LoadForUpdate checks that the
  // store will succeed and is the access that is observed; StoreUpdate cannot
  // fail.
  template <class U>
  V<U> LoadForUpdate(uint64_t addr);
  template <class U>
  void StoreUpdate(uint64_t addr, V<U> value);
  // Access 16 bytes (atomically updated: CMPXCHG16B), or any number up to a
  // page (FXSAVE): one access each. On a fault these raise it and return false.
  // The shadow is concretised and cleared.
  bool LoadBytes(uint64_t addr, std::span<std::byte> bytes);
  bool StoreBytes(uint64_t addr, std::span<const std::byte> bytes);
  bool LoadBytesForUpdate(uint64_t addr, std::span<std::byte> bytes);
  void StoreBytesUpdate(uint64_t addr, std::span<const std::byte> bytes);
  // These return whether an access would succeed, and raise nothing.
  bool CanLoad(uint64_t addr, uint64_t size_bytes) const {
    return memory_.CanLoad(addr, size_bytes);
  }
  bool CanStore(uint64_t addr, uint64_t size_bytes) const {
    return memory_.CanStore(addr, size_bytes);
  }
  // As Memory does.
  template <class Visit>
  void ForEachMirror(uint64_t addr, uint64_t size_bytes, Visit visit) const {
    memory_.ForEachMirror(addr, size_bytes, visit);
  }
  // Returns an access of the current instruction, for observers.
  ObservedAccess MakeAccess(uint64_t addr, uint64_t value, uint64_t size_bytes,
                            AccessKind kind) const;
  // Returns whether each access has to be made on its own: it is reported, or
  // its store waits.
  bool one_by_one() const { return observer_ != nullptr || buffer_ != nullptr; }
  bool stores_wait() const { return buffer_ != nullptr; }
  // Lets the stores that wait leave.
  void Fence() {
    if (buffer_ != nullptr) [[unlikely]] {
      buffer_->Drain(memory_);
    }
  }
  // Raises what an access there would raise; true if it would succeed.
  bool CheckLoad(uint64_t addr, uint64_t size_bytes);
  bool CheckStore(uint64_t addr, uint64_t size_bytes);

  // The lanes of a form, of a vector register or as much memory, in quadwords
  // with their shadow: for moves and bitwise logic. Memory must be aligned to
  // its size, or kGeneral is raised, unless `unaligned`. Writing a register
  // keeps or clears the lanes above, as VecForm says. An MMX register is the
  // first quadword, as in all that follows, and has no shadow.
  template <VecForm kForm>
  using Quads = std::array<V<uint64_t>, 2 * kForm.lanes>;
  template <VecForm kForm>
  [[gnu::always_inline]] Quads<kForm> ReadQuads(const Insn& insn,
                                                const Operand& operand,
                                                bool unaligned = kForm.vex);
  template <VecForm kForm>
  [[gnu::always_inline]] void WriteQuads(const Insn& insn,
                                         const Operand& operand,
                                         const Quads<kForm>& value,
                                         bool unaligned = kForm.vex);
  // The same as plain values (the shadow is concretised on read, cleared on
  // write).
  template <VecForm kForm>
  using Vec = std::array<Vec128, kForm.lanes>;
  template <VecForm kForm>
  Vec<kForm> ReadLanes(const Insn& insn, const Operand& operand,
                       bool unaligned = kForm.vex);
  template <VecForm kForm>
  void WriteLanes(const Insn& insn, const Operand& operand,
                  const Vec<kForm>& value, bool unaligned = kForm.vex);
  // The same for what has an SSE form only.
  Vec128 ReadVec(const Insn& insn, const Operand& operand,
                 bool unaligned = false) {
    return ReadLanes<kSse>(insn, operand, unaligned)[0];
  }
  void WriteVec(const Insn& insn, const Operand& operand, Vec128 value) {
    WriteLanes<kSse>(insn, operand, {value});
  }
  // Clears the lanes of a vector register from `lane` on.
  void ClearLanes(unsigned number, unsigned lane);
  // Notes in XINUSE that an instruction of this vector length, in bytes, wrote
  // a vector register.
  void NoteVectorUse(unsigned number, unsigned vector_bytes) {
    if (number >= kLowVecRegisters) {
      regs_.high_zmm_in_use = true;
      return;
    }
    regs_.avx_in_use |= vector_bytes > kLaneBytes;
    regs_.zmm_in_use |= vector_bytes > 2 * kLaneBytes;
  }
  // Opmask registers, which have no shadow.
  uint64_t GetOpmask(unsigned number) const { return regs_.opmask[number]; }
  void SetOpmask(unsigned number, uint64_t value) {
    regs_.opmask[number] = value;
    regs_.opmask_in_use = true;
  }
  // The low `sizeof(U)` bytes of an XMM register, or memory of that size, for
  // scalar forms (MOVQ, ADDSD with U = uint64_t, ADDSS with uint32_t). Writing
  // keeps the rest of an XMM register. General registers work as well. The
  // shadow is carried.
  template <class U>
  V<U> ReadLow(const Insn& insn, const Operand& operand);
  template <class U>
  void WriteLow(const Insn& insn, const Operand& operand, V<U> value);
  // A quadword with its low `sizeof(U)` bytes replaced.
  template <class U>
  V<uint64_t> WithLow(V<uint64_t> quad, V<U> low);
  // Quadwords of a vector register with their shadow, as Registers::quad counts
  // them. Setting one keeps the others.
  V<uint64_t> GetQuad(unsigned number, unsigned i) {
    return d_.GetQuad(regs_, number, i);
  }
  void SetQuad(unsigned number, unsigned i, V<uint64_t> value) {
    d_.SetQuad(regs_, number, i, value);
  }

  // MMX registers. What else an MMX instruction does to the x87 state:
  // X87Stack::EnterMmx.
  V<uint64_t> GetMmx(unsigned number) {
    return d_.Const(regs_.x87.regs[number].significand);
  }
  void SetMmx(unsigned number, V<uint64_t> value) {
    X87Stack(regs_.x87).SetMmx(number, d_.Concretise(value),
                               regs_.is_of_qemu());
  }

  // Control flow: the next instruction to run.
  void Jump(uint64_t target) { regs_.rip = target; }
  // A conditional branch: reports a symbolic condition; true if taken.
  bool Decide(V<bool> condition) { return d_.Decide(condition); }
  void Push(V<uint64_t> value);

  //---------------------------------------------------------------------------
  // The run loop (cpu_run.h).
  Stop Run(uint64_t max_insns);
  void CompleteInsn(const InsnInput& input);
  void set_observer(AccessObserver* observer) { observer_ = observer; }
  // `insn`: instructions that the thread had retired before the next Run.
  void set_store_buffer(StoreBuffer* buffer, uint64_t insn,
                        bool stops_to_drain) {
    buffer_ = buffer;
    first_insn_ = insn;
    stops_to_drain_ = buffer != nullptr && stops_to_drain;
  }
  // The instruction being executed, and where that is kept.
  const Insn* current() const { return current_; }
  const Insn* const* current_place() const { return &current_; }
  void RaiseFetch(uint64_t addr);

 private:
  uint64_t RunBlock(const Block<D>& block, uint64_t budget);
  // How many instructions of a block to run before the buffer is looked at
  // again; 0: it has to be empty first.
  uint64_t BeforeDrain(const Block<D>& block) const;
  Stop MakeStop(uint64_t retired);
  // Instructions this Run call retired before the current one.
  uint64_t CurrentOffset() const;
  void Observe(uint64_t addr, uint64_t value, uint64_t size_bytes,
               AccessKind kind);
  // Memory as the thread sees it; false, with nothing changed, if a byte may
  // not be accessed. T: an integer, or a span or array of bytes or integers.
  template <class T>
  bool LoadPlain(uint64_t addr, T& value);
  template <class T>
  bool StorePlain(uint64_t addr, const T& value);
  // The part of it that is not in the way where no store waits.
  [[gnu::noinline]] bool StoreWaiting(uint64_t addr,
                                      std::span<const std::byte> bytes);
  // Of an operand that is no vector register; see ReadQuads, WriteQuads.
  template <VecForm kForm>
  [[gnu::noinline]] Quads<kForm> LoadQuads(const Insn& insn,
                                           const Operand& operand,
                                           bool unaligned);
  template <VecForm kForm>
  [[gnu::noinline]] void StoreQuads(const Insn& insn, const Operand& operand,
                                    const Quads<kForm>& value, bool unaligned);
  void RaiseAccess(uint64_t addr, uint64_t size_bytes, bool write);
  // Returns the address of the memory operand; raises kGeneral if it is not
  // aligned to `alignment` bytes, a power of two.
  uint64_t AlignedAddress(const Insn& insn, unsigned alignment, bool write);
  // A store into executable memory must be seen by the next instruction.
  void NoticeCodeChange();

  D d_;
  Registers& regs_;
  Memory& memory_;
  BlockCache<D>& code_;
  Flags<D> flags_;
  Signal signal_ = Signal::kNone;
  Fault fault_;
  const Insn* current_ = nullptr;
  const Op<D>* block_begin_ = nullptr;
  uint64_t retired_before_block_ = 0;  // by this Run call
  AccessObserver* observer_ = nullptr;
  StoreBuffer* buffer_ = nullptr;
  uint64_t first_insn_ = 0;
  bool stops_to_drain_ = false;
  uint64_t code_version_ = 0;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_CPU_CORE_H_
