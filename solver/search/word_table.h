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

// What conflicts are looked for in: neighbours of an array of int are two
// words, so that threads which use one each are not taken to share them.
inline constexpr uint64_t kWordBytes = 4;
inline uint64_t WordOf(uint64_t addr) { return addr / kWordBytes; }

// A memory access as far as order matters.
struct WordAccess {
  InsnRef at;
  uint64_t word = 0;  // WordOf(address)
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
// what lies in a future that was rolled back stays in it. Once all accesses
// have been noted twice, in any order, it knows exactly those that are
// contested, as long as accesses_dropped() is 0.
//
// Not thread-safe.
class WordTable {
 public:
  WordTable(size_t threads, uint64_t slack_ticks, WordTableLimits limits = {});

  // Learns of an access. Returns whether the word is shared: touched by two
  // threads, one of them writing.
  bool Note(const WordAccess& access);

  // Contested instructions of one thread with what each accesses (one of its
  // accesses, as last seen).
  using Contested = std::map<uint64_t, WordAccess>;
  const Contested& contested(uint32_t thread) const {
    return contested_[thread];
  }
  // Returns the thread's first contested instruction at or after `insn`; the
  // largest number if there is none.
  uint64_t NextContested(uint32_t thread, uint64_t insn) const;
  uint64_t contested_count() const;
  bool IsContestedWord(uint64_t word) const {
    return contested_words_.contains(word);
  }
  // Returns where contested accesses are: addresses / 8, as formulas have it.
  std::unordered_set<uint64_t> ContestedWords() const;

  // Returns whether one of these threads touched a word of `first` to `last`.
  // It is not known who touched a shared word: there, any thread may have.
  // Looks at every word of the range, or of the table if that has fewer.
  bool IsTouched(uint64_t first, uint64_t last,
                 const std::set<size_t>& threads) const;
  // Returns the calls of Note that were not kept because a limit was met: what
  // is contested may be missed from then on.
  uint64_t accesses_dropped() const { return accesses_dropped_; }
  // Returns a number that grows whenever a word turns out to be shared or an
  // instruction contested. A run that leaves it as it was has met no access of
  // a kind that was not known before.
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
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no WordOf
  // An entry of the hash table.
  struct Word {
    uint64_t number = kEmpty;
    uint32_t owner = kNobody;  // who touched it first
    bool shared = false;
    bool written = false;
  };
  // Returns the slot of the word, or the free one where it would be.
  size_t SlotOf(uint64_t number) const;
  // Returns nullptr if the table is full.
  Word* Find(uint64_t number);
  void Grow();
  void NoteShared(const WordAccess& access);
  // Marks every group that conflicts with `key` as contested. Returns whether
  // there is one.
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
