#ifndef CLEW_MACHINE_CPU_H_
#define CLEW_MACHINE_CPU_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/access.h"
#include "common/inputs.h"
#include "common/x86/features.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/store_buffer.h"

namespace clew::machine {

enum class FaultKind : uint8_t {
  kNone,
  kUnmapped,    // SIGSEGV, SEGV_MAPERR
  kProtection,  // SIGSEGV, SEGV_ACCERR
  kGeneral,     // SIGSEGV: non-canonical, misaligned SSE operand, privileged
  kDivide,      // SIGFPE
  kIllegal,     // SIGILL: UD2 and undefined encodings
  kBreakpoint,  // SIGTRAP, of an INT3 before: no Stop has it, INT3 retires
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  uint64_t addr = 0;  // accessed address where there is one
  bool write = false;
};

enum class StopKind : uint8_t {
  kBudget,            // max_insns retired
  kSyscall,           // SYSCALL retired: rip is after it, rcx and r11 are set;
                      // the caller sets rax and memory
  kBreakpoint,        // INT3 retired: rip is after it
  kNondeterministic,  // rip is at CPUID, RDTSC, ...: CompleteInsn retires it
  kFault,             // rip is at the faulting instruction, nothing changed
  kUnsupported,       // an instruction the machine does not know; `detail`
                      // names it with address and bytes
  kObserver,          // the observer asked to stop, after that instruction;
                      // or so did a full store buffer
  kDrain,             // rip is at an instruction that finds the store buffer
                      // empty, and it is not
};

struct Stop {
  StopKind kind = StopKind::kBudget;
  uint64_t insns_retired = 0;  // by this call
  Fault fault;
  std::string detail;
};

// One access as it happens. `value` holds the low 8 bytes read or written (for
// a read-modify-write: what was read).
struct ObservedAccess {
  uint64_t ip = 0;
  // Instructions this Run call had retired before the one that accesses.
  uint64_t insn_offset = 0;
  uint64_t addr = 0;
  uint64_t value = 0;
  uint32_t size_bytes = 0;
  AccessKind kind = AccessKind::kRead;
};

// Sees every data access of an instruction, in its order, as it is made. A REP
// string instruction reports one access per iteration. An instruction that
// faults may have reported accesses it made before the fault.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  // Returns true to stop after the current instruction.
  virtual bool OnAccess(const ObservedAccess& access) = 0;
};

struct Concrete;
template <class D>
class Cpu;
template <class D>
class BlockCache;

// Decoded instructions, shared by all threads of a process and by all domains'
// CPUs of one kind. Forgets what a change of executable memory makes stale.
// Not thread-safe.
class CodeCache {
 public:
  // Of a CPU that is x86-64-v2 and no more.
  CodeCache() : CodeCache(x86::kX86_64V2) {}
  // Of a CPU with these features: an instruction of another is not supported.
  explicit CodeCache(x86::FeatureSet features);
  x86::FeatureSet features() const { return features_; }
  ~CodeCache();
  CodeCache(CodeCache&&) noexcept;
  CodeCache& operator=(CodeCache&&) noexcept;

 private:
  x86::FeatureSet features_;
  friend class Machine;
  friend bool NextDrains(const Registers&, const Memory&, CodeCache&);
  std::unique_ptr<BlockCache<Concrete>> blocks_;
};

// One thread of x86-64 user mode in the concrete domain.
//
// Runs instructions exactly as the CPU would; what it does not know is a
// kUnsupported stop, never skipped. Not thread-safe.
class Machine {
 public:
  // All three are borrowed and must outlive the machine. Several machines
  // (threads) share one memory and one cache. Between calls of Run the
  // registers may be changed at will.
  Machine(Registers& registers, Memory& memory, CodeCache& code);
  ~Machine();
  Machine(Machine&&) noexcept;

  // Retires up to `max_insns` instructions. A REP string instruction counts as
  // one, with all its iterations.
  Stop Run(uint64_t max_insns);

  // Retires the instruction at a kNondeterministic stop with these results.
  // REQUIRES: the last Run ended in such a stop, rip is where it was.
  void CompleteInsn(const InsnInput& input);

  // Borrowed. nullptr: none, the fast path.
  void set_observer(AccessObserver* observer);
  // Where the thread's stores wait, and how many instructions it had retired
  // before the next Run. Borrowed. nullptr: nowhere, the fast path. With
  // `stops_to_drain` nothing leaves the buffer within Run: it ends with kDrain
  // or, once the buffer is full, with kObserver.
  void set_store_buffer(StoreBuffer* buffer, uint64_t insn,
                        bool stops_to_drain);

 private:
  std::unique_ptr<Cpu<Concrete>> cpu_;
};

// Returns whether the instruction at rip finds the store buffer empty.
bool NextDrains(const Registers& registers, const Memory& memory,
                CodeCache& code);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_CPU_H_
