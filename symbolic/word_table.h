#ifndef CLEW_SYMBOLIC_WORD_TABLE_H_
#define CLEW_SYMBOLIC_WORD_TABLE_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/access.h"
#include "symbolic/edges.h"

namespace clew::symbolic {

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
  // Per shared word, accesses kept to compare later ones with: all, until there
  // are open_apart_max; from then on those whose times overlap the newest
  // one's, at most open_max.
  size_t open_apart_max = 64;
  size_t open_max = 512;
};

// Which words are shared, and which accesses are contested: conflicting ones of
// different threads whose times overlap. Learned over all runs of one search;
// what lies in a future that was rolled back stays in it. Noted twice, in any
// order, accesses are contested if and only if that is so, as long as none of
// the limits is met. It guides the search and proves nothing.
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

  uint64_t words_dropped() const { return words_dropped_; }

 private:
  struct Last {
    uint64_t insn = 0;
    uint64_t lo_tick = 0;
    uint64_t hi_tick = 0;
    uint32_t thread = 0;
    AccessKind kind = AccessKind::kRead;
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
  // nullptr: the table is full.
  Word* Find(uint64_t number);
  void Grow();
  void NoteOverlaps(const WordAccess& access);
  bool Apart(const WordAccess& access, const Last& last) const;
  bool Overlap(const WordAccess& access, const Last& last) const;

  uint64_t slack_ticks_;
  WordTableLimits limits_;
  std::vector<Word> words_;  // open addressing, linear; a power of two
  uint64_t words_used_ = 0;
  // Of shared words: accesses whose times may overlap with those to come.
  std::unordered_map<uint64_t, std::vector<Last>> open_;
  std::vector<Contested> contested_;  // by thread
  std::unordered_set<uint64_t> contested_words_;
  uint64_t words_dropped_ = 0;
};

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_WORD_TABLE_H_
