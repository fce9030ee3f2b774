#ifndef CLEW_SOLVER_RACES_H_
#define CLEW_SOLVER_RACES_H_

#include <cstdint>
#include <vector>

#include "common/access.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/recording.h"

namespace clew::solver {

// For people who look at a witness: which accesses of two threads to one word
// got in each other's way.
//
// A thread that accesses a word twice in a row has seen it change in between
// if another thread came between the two:
//
//     first   between   second     what happened
//     read    write     write      the write in between is lost
//     read    write     read       the two reads differ
//     write   write     read       it does not read what it wrote
//     write   read      write      a value that was not final was read
//
// After: Lu, Tucek, Qin, Zhou, "AVIO: Detecting atomicity violations via access
// interleaving invariants", ASPLOS 2006, "Unserializable interleavings". Worked
// example: A reads balance, 100; B writes 110; A writes 110: B's 10 are lost.
//
// Of each word one such triple is told, or where it has none, the last two
// accesses of two threads of which one writes. First come words that no
// instruction accesses as an atomic read-modify-write, as a lock or a counter
// is; then lost writes; then triples whose two outer accesses are closer
// together; then the later ones. It is a heuristic: that two accesses meet does
// not make them wrong.
struct RaceAccess {
  Access access;
  uint64_t value = 0;  // the low 8 bytes read or written
};
// Two or three accesses in the order of the witness; a store that waited comes
// when other threads could see it, though it retired before.
using Race = std::vector<RaceAccess>;

struct RaceLimits {
  size_t races_max = 4;
  size_t words_max = size_t{1} << 20;  // watched; those met later are not
};

// Runs `steps`, a witness of `recording`, and returns its races, best first.
// Fails as OpenedRecording::Open and RunSchedule do.
[[nodiscard]] Result<std::vector<Race>> FindRaces(
    const follower::Recording& recording,
    const std::vector<ScheduleStep>& steps, const RaceLimits& limits = {});

}  // namespace clew::solver

#endif  // CLEW_SOLVER_RACES_H_
