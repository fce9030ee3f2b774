#ifndef CLEW_SOLVER_SEARCH_WORD_TABLE_H_
#define CLEW_SOLVER_SEARCH_WORD_TABLE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/access.h"
#include "solver/search/edges.h"

namespace clew::solver {

// A memory access as far as order matters.
struct WordAccess {
  InsnRef at;
  uint64_t word = 0;  // address / 8
  AccessKind kind = AccessKind::kRead;
  uint64_t lo_tick = 0;  // the block's time bounds
  uint64_t hi_tick = 0;
};

struct WordTableLimits {
  uint64_t words_max = 8u << 20;  // distinct words watched (16 bytes each)
  // What is kept of shared words to compare later accesses with: groups (some
  // 100 bytes each) and accesses not known to be contested (8 bytes each).
  uint64_t kept_max = 4u << 20;
};

// Which words are shared, and which accesses are contested: conflicting ones of
// different threads whose times overlap. Learned over all runs of one search;
// what lies in a future that was rolled back stays in it. Noted twice, in any
// order, accesses are contested if and only if that is so, as long as
// accesses_dropped() is 0.
//
// Not thread-safe.
class WordTable {
 public:
  WordTable(size_t threads, uint64_t slack_ticks, WordTableLimits limits = {});

  // Returns whether the word is shared: touched by two threads, one of them
  // writing.
  bool Note(const WordAccess& access);

  // Contested instructions of one thread with what each accesses (one of its
  // accesses, as last seen).
  using Contested = std::map<uint64_t, WordAccess>;
  const Contested& contested(uint32_t thread) const {
    return contested_[thread];
  }
  // The thread's first contested instruction at or after `insn`; the largest
  // number if there is none.
  uint64_t NextContested(uint32_t thread, uint64_t insn) const;
  uint64_t contested_count() const;
  bool IsContestedWord(uint64_t word) const {
    return contested_words_.contains(word);
  }
  // Words (address / 8) of contested accesses.
  const std::unordered_set<uint64_t>& ContestedWords() const {
    return contested_words_;
  }

  // Whether one of these threads touched a word of `first` to `last`. Of shared
  // words it is not known who did: then, whether `threads` is not empty. Looks
  // at every word.
  bool IsTouched(uint64_t first, uint64_t last,
                 const std::set<size_t>& threads) const;
  // Calls of Note that were not kept because a limit was met: what is contested
  // may be missed from then on.
  uint64_t accesses_dropped() const { return accesses_dropped_; }
  // Grows whenever a word turns out to be shared or an instruction contested.
  // A run that leaves it as it was has met no access of another kind than known
  // before.
  uint64_t learned() const { return shared_words_ + contested_count(); }

 private:
  // Accesses of one word that are alike to all others: of one thread, one kind
  // and one time interval.
  struct GroupKey {
    uint64_t lo_tick = 0;
    uint64_t hi_tick = 0;
    uint32_t thread = 0;
    AccessKind kind = AccessKind::kRead;
    auto operator<=>(const GroupKey&) const = default;
  };
  struct Group {
    bool contested = false;
    std::vector<uint64_t> insns = {};  // ascending; empty once it is contested
  };
  struct Groups {
    std::map<GroupKey, Group> by_time;
    uint64_t longest_ticks = 0;  // hi - lo
  };
  static constexpr uint32_t kNobody = ~uint32_t{0};
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no address / 8
  // An entry of the hash table.
  struct Word {
    uint64_t number = kEmpty;
    uint32_t owner = kNobody;  // who touched it first
    bool shared = false;
    bool written = false;
  };
  // Of the word, or of the free entry where it would be.
  size_t SlotOf(uint64_t number) const;
  // nullptr: the table is full.
  Word* Find(uint64_t number);
  void Grow();
  void NoteShared(const WordAccess& access);
  // Contested: it, and every group that it conflicts with.
  bool Compare(Groups& groups, uint64_t word, const GroupKey& key);
  bool Before(uint64_t hi_tick, uint64_t lo_tick) const;
  bool Conflict(const GroupKey& a, const GroupKey& b) const;
  void Keep(Group& group, uint64_t insn);
  void SetContested(uint64_t word, const GroupKey& key, Group& group);
  bool HasRoom() const { return kept_ < limits_.kept_max; }

  uint64_t slack_ticks_;
  WordTableLimits limits_;
  std::vector<Word> words_;  // open addressing, linear; a power of two
  uint64_t words_used_ = 0;
  std::unordered_map<uint64_t, Groups> groups_;  // of shared words
  uint64_t kept_ = 0;                            // groups and their insns
  uint64_t shared_words_ = 0;
  std::vector<Contested> contested_;  // by thread
  std::unordered_set<uint64_t> contested_words_;
  uint64_t accesses_dropped_ = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_WORD_TABLE_H_
