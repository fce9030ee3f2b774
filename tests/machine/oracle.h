#ifndef CLEW_TESTS_MACHINE_ORACLE_H_
#define CLEW_TESTS_MACHINE_ORACLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/x86/features.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/registers.h"

namespace clew::machine {

// One instruction on the real CPU and on the machine, complete effect compared.
//
// Natively the instruction runs in this process: a signal handler returns into
// the wanted state with the trap flag set, and the trap (or the fault) after
// it brings the new state. The instruction sees two pages: its code at kCodeAt,
// and a data window at kDataAt with nothing mapped around it.
inline constexpr uint64_t kCodeAt = 0x20000000;
inline constexpr uint64_t kDataAt = 0x10000000;
inline constexpr size_t kDataBytes = 4096;

struct State {
  Registers regs;
  std::array<std::byte, kDataBytes> window = {};
};

struct Outcome {
  State state;
  int signal = 0;         // SIGSEGV, SIGFPE, SIGILL; 0: it retired
  bool has_addr = false;  // a page fault: fault_addr is known
  uint64_t fault_addr = 0;
  bool supported = true;  // machine only
  std::string detail;     // of what is not supported
};

// The machine has the features of the host's CPU, as far as they are compared.
//
// Some hypervisors cannot enter user mode with a stack pointer that is not
// canonical: the guest sees a general protection fault in place of the
// instruction. There both runs begin with one that is; on a CPU without AVX,
// with upper halves of vector registers that are zero; on one without AVX-512,
// or whose kernel does not let programs use it, with its registers zero. Each
// is said once on standard output.
//
// Only one at a time in a process; single-threaded tests only.
class Oracle {
 public:
  Oracle();
  ~Oracle();
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // The instruction for the runs that follow.
  void SetCode(std::span<const uint8_t> code);
  // Both begin at state.regs with rip = kCodeAt.
  Outcome RunOnCpu(const State& state);
  Outcome RunOnMachine(const State& state);

  // Empty if the machine does what the CPU does, else a description.
  // `undefined_flags` are not compared.
  std::string Compare(const State& state, uint64_t undefined_flags);

 private:
  Registers Enterable(const Registers& regs) const;
  bool EntersWithAnyStack();

  Memory memory_;
  CodeCache cache_{x86::HostFeatures()};
  Registers regs_;
  Machine machine_;
  std::array<uint8_t, 16> code_ = {};
  bool any_stack_ = true;
};

// What differs; empty if nothing does.
std::string Difference(const Outcome& cpu, const Outcome& machine,
                       uint64_t undefined_flags);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_ORACLE_H_
