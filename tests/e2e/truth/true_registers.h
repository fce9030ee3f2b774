#ifndef CLEW_TESTS_E2E_TRUTH_TRUE_REGISTERS_H_
#define CLEW_TESTS_E2E_TRUTH_TRUE_REGISTERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "common/units.h"
#include "follower/process.h"
#include "machine/cpu.h"
#include "machine/decode.h"
#include "machine/registers.h"
#include "tests/e2e/truth/true_schedule.h"

namespace clew::e2e {

// The registers of a stepped program before each of its instructions, as CPU
// and kernel have them: general registers, flags and the XSAVE area, of which
// only what changed is kept (some 40 bytes an instruction).
class TrueRegisters {
 public:
  // Reads those of `thread`; for RecordOptions::before_insn.
  [[nodiscard]] Status Note(const TracedProcess& process, Tid thread,
                            uint64_t tick);

  // Reads what was noted of one thread, from its first instruction on.
  class Reader {
   public:
    // `noted` is borrowed.
    Reader(const TrueRegisters& noted, Tid thread);
    // Returns the registers before the instruction that was the next one at
    // `tick`; nullptr if none was noted then. REQUIRES: no tick goes back.
    const machine::Registers* At(uint64_t tick);

   private:
    const TrueRegisters* noted_;
    Tid thread_;
    size_t notes_ = 0;    // that were read
    size_t changes_ = 0;  // likewise
    std::vector<uint64_t> words_;
    machine::Registers registers_;
  };

 private:
  struct Thread {
    std::vector<uint64_t> last;         // words at the last note
    std::vector<uint64_t> ticks;        // of each note
    std::vector<size_t> changes_until;  // of each note
    std::vector<uint16_t> words;        // of each change
    std::vector<uint64_t> values;       // likewise
  };
  std::map<Tid, Thread> threads_;
};

// Runs the instructions of a process on the machine, and looks before each
// whether it has the registers that the CPU had.
class RegisterChecker final : public follower::Engine {
 public:
  // All are borrowed.
  RegisterChecker(follower::Process& process, const TrueRegisters& truth,
                  const std::vector<Turn>& turns);

  machine::Stop Run(size_t thread, uint64_t max_insns) override;
  void CompleteInsn(size_t thread, const InsnInput& input) override;
  void OnSyscall(size_t /*thread*/, const SyscallInput& /*call*/) override {}
  void OnKernelWrite(size_t /*thread*/, uint64_t /*addr*/,
                     uint64_t /*size_bytes*/) override {}
  void OnReturn(size_t /*thread*/, const SyscallInput& /*call*/) override {}
  void OnThreadCreated(size_t /*parent*/, size_t /*child*/) override {}
  void OnForced(size_t /*thread*/) override {}

  uint64_t compared() const { return compared_; }  // instructions
  uint64_t differing() const { return differing_; }
  // The first ones, for people.
  const std::vector<std::string>& told() const { return told_; }

 private:
  void Compare(size_t thread, uint64_t retired);
  // What the manual leaves open: the machine goes on with the CPU's.
  void TakeUndefinedFlags(size_t thread, uint64_t of_cpu);
  void TakeUnusedX87(size_t thread, const machine::X87& of_cpu);
  machine::Machine MachineOf(size_t thread);

  follower::Process& process_;
  machine::CodeCache code_;
  machine::Decoder decoder_;
  std::map<Tid, std::vector<uint64_t>> ticks_;
  std::map<size_t, TrueRegisters::Reader> readers_;  // by thread
  std::map<size_t, uint64_t> last_ips_;              // likewise
  const TrueRegisters& truth_;
  uint64_t compared_ = 0;
  uint64_t differing_ = 0;
  std::vector<std::string> told_;
};

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_TRUTH_TRUE_REGISTERS_H_
