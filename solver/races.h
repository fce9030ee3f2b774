#ifndef CLEW_SOLVER_RACES_H_
#define CLEW_SOLVER_RACES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/access.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/recording.h"
#include "solver/code_guide.h"
#include "solver/wait_cycle.h"

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
// accesses of two threads of which one writes and which nothing puts in order.
// A descriptor is such a word: close and dup2 write it, other calls read it.
//
// Accesses of one thread that come between two sections of a lock which the
// other holds are no race, and neither are two that creation or end of a thread
// puts in order; docs/design/races.md has the rules, and how locks are known.
// First come words of the program, then those of a library on its behalf, and
// last what the libraries, ld.so and the kernel do for themselves; in each of
// these first words that no instruction accesses as an atomic
// read-modify-write, then lost writes, then triples whose two outer accesses
// are closer together, then the later ones. It is a heuristic: that two
// accesses meet does not make them wrong.
struct RaceAccess {
  Access access;       // of a descriptor: its number is the address
  uint64_t value = 0;  // the low 8 bytes read or written; a call's result
  // What follows the program's call of the library or the kernel that
  // accesses; 0: the program does itself, or that is not known.
  TraceeAddr caller;
  std::optional<uint16_t> call;  // to a descriptor: its number
};

// Two or three accesses in the order of the witness; a store that waited comes
// when other threads could see it, though it retired before.
struct Race {
  // A library's, ld.so's or the kernel's own business: not the program's race.
  bool internal = false;
  // Each is in a section of one lock, and the sections are not one.
  bool under_locks = false;
  std::vector<RaceAccess> accesses;
};

struct RaceLimits {
  size_t races_max = 4;
  size_t words_max = size_t{1} << 20;  // watched; those met later are not
};

struct RaceReport {
  std::vector<Race> races;             // best first
  std::vector<WaitingThread> waiting;  // at the end; those of a cycle first
};

// Runs `steps`, a witness of `recording`, and returns what it shows. `guide` is
// asked once for each instruction. Fails as OpenedRecording::Open and
// RunSchedule do.
[[nodiscard]] Result<RaceReport> FindRaces(
    const follower::Recording& recording,
    const std::vector<ScheduleStep>& steps, CodeGuide& guide,
    const RaceLimits& limits = {});

}  // namespace clew::solver

#endif  // CLEW_SOLVER_RACES_H_
