#ifndef CLEW_FOLLOWER_REGISTER_COMPARISON_H_
#define CLEW_FOLLOWER_REGISTER_COMPARISON_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/units.h"
#include "follower/process.h"

namespace clew::follower {

// Registers of one thread as the core dump has them, exact for the end of its
// recorded stream.
struct DumpedRegisters {
  Tid thread;
  std::array<uint64_t, 16> gpr = {};  // by Gpr
  uint64_t rip = 0;
  uint64_t fs_base = 0;
};

// How many of the core dump's registers a process has. Flags are left out:
// many instructions leave some of them undefined. So is what the kernel puts
// into rax, rcx and r11 of a thread that is in a system call.
struct RegisterComparison {
  uint64_t compared = 0;
  uint64_t equal = 0;
  struct Difference {
    Tid thread;
    std::string name;  // "rdx"
    uint64_t machine = 0;
    uint64_t dumped = 0;
  };
  std::vector<Difference> differences;
};

// Compares the registers of the threads that have a stream. REQUIRES: the
// streams of all threads have ended.
RegisterComparison CompareRegisters(const Process& process,
                                    std::span<const DumpedRegisters> dumped);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_REGISTER_COMPARISON_H_
