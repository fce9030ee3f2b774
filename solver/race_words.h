#ifndef CLEW_SOLVER_RACE_WORDS_H_
#define CLEW_SOLVER_RACE_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "solver/code_guide.h"
#include "solver/lock_watch.h"
#include "solver/races.h"
#include "solver/thread_order.h"

// What threads did to one word, or to one descriptor, and which of it makes the
// best race.

namespace clew::solver {

// An access as a witness shows it.
struct Seen {
  RaceAccess what;
  size_t thread = 0;   // index
  uint64_t order = 0;  // in the witness; 0: none
  uint32_t locks = 0;  // held: LockWatch::HeldBy
  Owner owner = Owner::kNobody;
  ThreadOrder::Stamp begun;   // by creation and end of threads
  ThreadOrder::Stamp locked;  // by locks as well

  uint8_t bytes = 0;  // of the word, a bit each

  bool writes() const { return Writes(what.access.kind); }
  bool Meets(const Seen& other) const { return (bytes & other.bytes) != 0; }
};

// What is known of order and locks at a moment.
struct RaceFacts {
  ThreadOrder& begun;
  ThreadOrder& locked;
  const LockWatch& locks;
};

// Better candidates compare less.
struct Candidate {
  static constexpr uint32_t kFar = ~uint32_t{0};
  // A library's or the kernel's own business, or data of theirs.
  bool internal = false;
  // How many words the failing thread has read since it read this one; kFar for
  // one of which nothing is wrong by itself.
  uint32_t near = kFar;
  bool ordered = false;      // by locks
  bool in_sections = false;  // of one lock: Race::under_locks
  bool atomic = false;       // the word is one of read-modify-writes
  bool is_triple = false;
  uint32_t indirect = 0;  // accesses that a library made for the program
  bool loses_write = false;
  uint64_t distance_insns = 0;  // of the outer accesses
  uint64_t order = 0;           // of the last access
  std::vector<Seen> accesses = {};

  auto Key() const {
    return std::tuple(internal, near, ordered, atomic, !is_triple, indirect,
                      !loses_write, distance_insns, ~order);
  }
  Race ToRace() const;
};

class RaceWord {
 public:
  // Notes an access to the word, at present: `facts` are of this moment.
  void Note(const Seen& seen, const RaceFacts& facts);
  // The best candidate; nullopt: no two accesses met.
  std::optional<Candidate> Best() const;

 private:
  // What one thread did to bytes of the word last, and others since; or what it
  // wrote there last, if it has read it again.
  struct Since {
    Seen what = {};        // by another thread
    bool ordered = false;  // locks put `last` before it
  };
  struct Others {
    Since read = {};
    Since write = {};
  };
  struct History {
    Seen last = {};
    bool read_again = false;
    // Null: none, as of most words. Apart, so that histories are small: an
    // array of bytes has one for each.
    std::unique_ptr<Others> others = {};
  };
  void Compare(const History& history, const Seen& seen,
               const RaceFacts& facts);
  void CompareTriple(const History& own, const Seen& seen,
                     const RaceFacts& facts);
  void ComparePair(const Seen& before, const Seen& seen,
                   const RaceFacts& facts);
  void Offer(Candidate candidate, std::initializer_list<const Seen*> accesses);

  // The history in which `seen` takes the place of the last access, and no
  // more; null: there is none.
  History* RepeatedBy(const Seen& seen);

  bool atomic_ = false;
  bool shared_ = false;  // threads have noted accesses, not only one
  std::vector<History> histories_;
  std::optional<Candidate> best_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_RACE_WORDS_H_
