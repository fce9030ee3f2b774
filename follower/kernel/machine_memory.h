#ifndef CLEW_FOLLOWER_KERNEL_MACHINE_MEMORY_H_
#define CLEW_FOLLOWER_KERNEL_MACHINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/linux/syscall_reads.h"
#include "machine/memory.h"

namespace clew::follower {

// The memory of the machine, as the table of system calls reads it. Borrows it.
class MachineMemory final : public ProgramMemory {
 public:
  explicit MachineMemory(const machine::Memory& memory) : memory_(memory) {}
  bool Read(uint64_t addr, std::span<std::byte> to) const override {
    return memory_.Peek(addr, to);
  }

 private:
  const machine::Memory& memory_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_MACHINE_MEMORY_H_
