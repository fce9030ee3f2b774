#ifndef CLEW_RECORDER_TRACER_FREE_LEGS_H_
#define CLEW_RECORDER_TRACER_FREE_LEGS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/x86/branch.h"
#include "recorder/native/known_code.h"
#include "recorder/native/ran_code.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// What a thread runs from the start of a fragment to one of its edges, or to
// its end. All that a trace tells of it is known beforehand, but for where an
// indirect one leads:
//
//   fragment 7   0x1000  jz  0x1080           the leg of edge 4: 4
//   instructions,
//                0x1002  jnz 0x10a0           two branches not taken, then one
//                0x1004  dec ecx              that is, to 0x1000
//                0x1006  jnz 0x1000  edge 4   in a trace: 001
//
// So a record costs a look at its leg and some bits, however long that is.
struct Leg {
  uint32_t fragment = 0;  // 0: it was not taken apart yet
  uint32_t insns = 0;
  uint32_t not_taken = 0;  // conditional branches before its last instruction
  x86::BranchClass last = x86::BranchClass::kNone;  // its last instruction
  bool falls = false;        // to `target`, without a record
  bool is_indirect = false;  // it goes where the next record says
  uint64_t start = 0;
  uint64_t behind = 0;  // the last instruction, in memory
  uint64_t target = 0;
  uint64_t version = 0;  // RanStretch::version
  uint64_t changes = 0;  // KnownCode::changes(), when it was taken apart
  // The fragment at `target` in that version of the log; 0: not known.
  uint32_t next = 0;
  uint32_t next_version = 0;
};

// The legs of the edges and fragments that logs told of. Their addresses do not
// change until they are dropped. Memory: some 100 bytes for each edge and
// fragment.
class Legs {
 public:
  // All are borrowed.
  Legs(const SharedMemory& shared, recorder::RanCode& ran_code,
       const recorder::KnownCode& code)
      : shared_(shared), ran_code_(ran_code), code_(code) {}

  // Drops them all if the tables have begun anew.
  void FollowTables();

  // Returns the leg up to an edge, and that of a whole fragment. One that is
  // asked for first runs now, at `now`. nullptr: the number is foul, or what it
  // says is no code.
  Leg* ToEdge(uint32_t edge, uint64_t now) {
    Leg* const leg = to_edges_.Find(edge);
    return leg != nullptr && IsValid(*leg) ? leg : MakeToEdge(edge, now);
  }
  Leg* Whole(uint32_t fragment, uint64_t now) {
    Leg* const leg = whole_.Find(fragment);
    return leg != nullptr && IsValid(*leg) ? leg : MakeWhole(fragment, now);
  }

  // Of a fragment; 0: the number is foul.
  uint64_t StartOf(uint32_t fragment) const {
    const std::span<const Fragment> fragments = shared_.fragments();
    return fragment < fragments.size() ? fragments[fragment].start : 0;
  }

 private:
  // Legs by their numbers, which grow.
  class Table {
   public:
    // nullptr: there was none like it yet.
    Leg* Find(uint32_t number) {
      const size_t part = number / kPart;
      return part < parts_.size() && parts_[part] != nullptr
                 ? &(*parts_[part])[number % kPart]
                 : nullptr;
    }
    Leg& At(uint32_t number);
    void Clear() { parts_.clear(); }

   private:
    static constexpr uint32_t kPart = 1024;
    std::vector<std::unique_ptr<std::array<Leg, kPart>>> parts_;
  };

  bool IsValid(const Leg& leg) const {
    return leg.fragment != 0 && leg.changes == code_.changes();
  }
  Leg* MakeToEdge(uint32_t number, uint64_t now);
  Leg* MakeWhole(uint32_t number, uint64_t now);
  // Takes apart the first bytes of a fragment. Returns false if they are no
  // code of one.
  bool TakeApart(uint32_t fragment, size_t bytes, uint64_t now, Leg& leg);

  const SharedMemory& shared_;
  recorder::RanCode& ran_code_;
  const recorder::KnownCode& code_;
  uint32_t forgotten_ = 0;  // SharedHeader::forgotten
  Table to_edges_;
  Table whole_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_LEGS_H_
