#ifndef CLEW_RECORDER_QEMU_INITIAL_STACK_H_
#define CLEW_RECORDER_QEMU_INITIAL_STACK_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// What the kernel puts above the stack pointer of a new program: argc, argv,
// NULL, envp, NULL, auxv. Source: System V ABI, AMD64 supplement, "Initial
// Process Stack".
struct InitialStack {
  std::vector<std::string> arguments;
  std::vector<Elf64_auxv_t> auxv;
  uint64_t auxv_addr = 0;

  // Returns the value of an entry; 0 where there is none.
  uint64_t Aux(uint64_t type) const;
  // Returns where an entry is.
  std::optional<uint64_t> AddrOf(uint64_t type) const;
  // The auxiliary vector as it is in memory.
  std::vector<std::byte> AuxvBytes() const;
  // The base name of the first argument; all of them, as ps shows them.
  std::string ProgramName() const;
  std::string CommandLine() const;
};

InitialStack ReadInitialStack(uint64_t rsp, const GuestMemory& memory);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_INITIAL_STACK_H_
