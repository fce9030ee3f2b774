#include "symbolic/word_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/digest.h"

namespace clew::symbolic {
namespace {

constexpr size_t kFirstWords = 1u << 16;

}  // namespace

WordTable::WordTable(size_t threads, uint64_t slack_ticks,
                     WordTableLimits limits)
    : slack_ticks_(slack_ticks),
      limits_(limits),
      words_(kFirstWords),
      contested_(threads) {}

WordTable::Word* WordTable::Find(uint64_t number) {
  const size_t mask = words_.size() - 1;
  for (size_t slot = MixBits(number) & mask;; slot = (slot + 1) & mask) {
    Word& word = words_[slot];
    if (word.number == number) {
      return &word;
    }
    if (word.number != kEmpty) {
      continue;
    }
    if (words_used_ >= limits_.words_max) {
      return nullptr;
    }
    if (2 * words_used_ >= words_.size()) {
      Grow();
      return Find(number);
    }
    ++words_used_;
    word.number = number;
    return &word;
  }
}

void WordTable::Grow() {
  const std::vector<Word> old =
      std::exchange(words_, std::vector<Word>(words_.size() * 2));
  words_used_ = 0;
  for (const Word& word : old) {
    if (word.number != kEmpty) {
      *Find(word.number) = word;
    }
  }
}

bool WordTable::Note(const WordAccess& access) {
  Word* const found = Find(access.word);
  if (found == nullptr) {
    ++words_dropped_;
    return false;
  }
  Word& word = *found;
  const uint32_t thread = access.at.thread;
  if (word.owner == kNobody) {
    word.owner = thread;
  }
  word.shared = word.shared || word.owner != thread;
  word.written = word.written || Writes(access.kind);
  if (word.shared) {
    NoteOverlaps(access);
  }
  return word.shared && word.written;
}

uint64_t WordTable::NextContested(uint32_t thread, uint64_t insn) const {
  const auto found = contested_[thread].lower_bound(insn);
  return found == contested_[thread].end()
             ? std::numeric_limits<uint64_t>::max()
             : found->first;
}

uint64_t WordTable::contested_count() const {
  uint64_t count = 0;
  for (const auto& insns : contested_) {
    count += insns.size();
  }
  return count;
}

// Either may be the earlier one: what is known may be from another run.
bool WordTable::Apart(const WordAccess& access, const Last& last) const {
  return last.hi_tick + slack_ticks_ < access.lo_tick ||
         access.hi_tick + slack_ticks_ < last.lo_tick;
}

bool WordTable::Overlap(const WordAccess& access, const Last& last) const {
  return last.thread != access.at.thread && !Apart(access, last) &&
         (Writes(last.kind) || Writes(access.kind));
}

void WordTable::NoteOverlaps(const WordAccess& access) {
  std::vector<Last>& open = open_[access.word];
  // One that is apart from this access may overlap with a later one, in time
  // or in another run.
  const bool crowded = open.size() >= limits_.open_apart_max;
  std::erase_if(open, [&](const Last& last) {
    return (crowded && Apart(access, last)) ||
           (last.thread == access.at.thread && last.insn == access.at.insn &&
            last.kind == access.kind);
  });
  bool contested = false;
  for (const Last& last : open) {
    if (Overlap(access, last)) {
      contested_[last.thread].insert_or_assign(
          last.insn, WordAccess{.at = {last.thread, last.insn},
                                .word = access.word,
                                .kind = last.kind,
                                .lo_tick = last.lo_tick,
                                .hi_tick = last.hi_tick});
      contested = true;
    }
  }
  if (contested) {
    contested_[access.at.thread].insert_or_assign(access.at.insn, access);
    contested_words_.insert(access.word);
  }
  if (open.size() < limits_.open_max) {
    open.push_back({.insn = access.at.insn,
                    .lo_tick = access.lo_tick,
                    .hi_tick = access.hi_tick,
                    .thread = access.at.thread,
                    .kind = access.kind});
  }
}

}  // namespace clew::symbolic
