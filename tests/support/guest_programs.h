#ifndef CLEW_TESTS_SUPPORT_GUEST_PROGRAMS_H_
#define CLEW_TESTS_SUPPORT_GUEST_PROGRAMS_H_

#include <cstdint>

// Small multithreaded programs for the guest recorder: compiled into the test,
// run by the machine. Each starts kGuestThreads threads, waits for them and
// ends with exit_group(0 if its result is as it should be, else 1). The
// argument is the number of rounds a thread makes.
namespace clew::test {

inline constexpr int kGuestThreads = 3;

extern "C" {
void GuestSpinLockCounter(uint64_t rounds);  // always right
void GuestMutexCounter(uint64_t rounds);     // futex mutex; always right
void GuestLostUpdate(uint64_t rounds);       // no lock
// As GuestLostUpdate, but ends with exit_group(the counter).
void GuestTellsSum(uint64_t rounds);
void GuestOrderViolation(uint64_t rounds);  // may use a pointer before it is
                                            // set: faults
void GuestDeadlock(uint64_t rounds);        // lock order: may hang
// Each thread has a counter of its own; they lie side by side.
void GuestNeighbours(uint64_t rounds);
extern volatile uint32_t guest_neighbours[kGuestThreads];
// The plain, unlocked counter that GuestLostUpdate increments.
extern volatile uint64_t guest_counter;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_GUEST_PROGRAMS_H_
