#ifndef CLEW_TESTS_SUPPORT_GUEST_RACY_H_
#define CLEW_TESTS_SUPPORT_GUEST_RACY_H_

#include <cstdint>

// Guest programs for the recorder of tests/support whose races are of the kinds
// that a search misses most easily.
namespace clew::test {

enum class StoreBarrier : uint64_t { kNone, kFence, kLocked, kCall };

extern "C" {
// What a thread reads says where it reads and writes next; a branch tells one
// bit of each value.
void GuestRacyIndex(uint64_t rounds);
// Threads push onto one stack by a load and a compare-and-exchange, as malloc's
// bins are filled.
void GuestPushes(uint64_t rounds);
// One thread polls a flag for a long time; what it finds behind it may be old.
void GuestPolling(uint64_t rounds);
// Threads leave racy values in words of their own; the first thread branches on
// them when all others are long gone.
void GuestLeavesResults(uint64_t rounds);
// Each of two threads stores into a word of its own and reads the other's, with
// a StoreBarrier between; no path depends on what it reads.
void GuestStoreBuffering(uint64_t between);
// One thread copies records of some words over the shared one, the other copies
// it out, without a lock; fails if a copy was torn.
void GuestCopies(uint64_t rounds);
// Two threads count in one instruction without LOCK; fails if one was lost.
void GuestIncrements(uint64_t rounds);
// Mutual exclusion by Dekker's and by Peterson's algorithm, without the fences
// that x86 needs for them; fails if both threads were inside.
void GuestDekker(uint64_t rounds);
void GuestPeterson(uint64_t rounds);
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_GUEST_RACY_H_
