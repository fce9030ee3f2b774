#ifndef CLEW_TESTS_SUPPORT_GUEST_CASES_H_
#define CLEW_TESTS_SUPPORT_GUEST_CASES_H_

#include <cstdint>

#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

// The guest programs, each with as many rounds as a search needs to be of use.
namespace clew::test {

struct GuestCase {
  const char* name;
  void (*entry)(uint64_t);
  uint64_t rounds;
  uint32_t quantum_insns_max = GuestRecorderOptions().quantum_insns_max;
};

inline constexpr GuestCase kGuestCases[] = {
    {"spin lock", GuestSpinLockCounter, 20},
    {"mutex", GuestMutexCounter, 20},
    {"lost update", GuestLostUpdate, 40},
    {"order violation", GuestOrderViolation, 10},
    {"deadlock", GuestDeadlock, 12},
};

// Odd seeds give a block for each instruction, even ones longer blocks.
inline GuestRecording RecordCase(const GuestCase& guest_case, uint64_t seed,
                                 uint64_t window_ticks = 1024) {
  GuestRecorderOptions options;
  options.seed = seed;
  options.quantum_insns_max = guest_case.quantum_insns_max;
  options.window_ticks = window_ticks;
  options.merge_blocks = seed % 2 == 0;
  return GuestRecording::Make(guest_case.entry, guest_case.rounds, options);
}

// A branch in the middle of the first thread goes where no instruction is.
inline void FalsifyPath(GuestRecording& guest) {
  auto& blocks = guest.blocks().begin()->second;
  StreamBlock& block = blocks[blocks.size() / 2];
  block.ip = TraceeAddr(block.ip.as_int() + 1);
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_GUEST_CASES_H_
