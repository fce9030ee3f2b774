#ifndef CLEW_TESTS_MACHINE_GUEST_CALL_H_
#define CLEW_TESTS_MACHINE_GUEST_CALL_H_

#include <cstdint>
#include <vector>

#include "machine/cpu.h"
#include "machine/memory.h"

namespace clew::machine {

// Calls functions of this very program on the machine: their code and data are
// copied into the machine's memory at the addresses they have here, so that a
// direct call in the test is the oracle. The functions may not call libraries
// or the kernel. CHECK-fails where this process cannot be read.
class GuestCall {
 public:
  static constexpr uint64_t kStackAt = 0x30000000;
  static constexpr uint64_t kStackBytes = 1 << 20;
  // Where the called function returns to: nothing is mapped there.
  static constexpr uint64_t kReturnTo = 0x66000;

  GuestCall();

  // Prepares `regs` for a call with integer arguments.
  Registers Prepare(uint64_t function, const std::vector<uint64_t>& args);
  Memory& memory() { return memory_; }

 private:
  Memory memory_;
};

struct GuestResult {
  bool returned = false;  // to kReturnTo
  Registers regs;
  uint64_t insns = 0;
  Stop stop;
};

// Runs until the function returns or something else stops the machine.
GuestResult RunToReturn(Memory& memory, CodeCache& code, Registers regs,
                        uint64_t max_insns);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_GUEST_CALL_H_
