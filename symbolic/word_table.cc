#include "symbolic/word_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/digest.h"

namespace clew::symbolic {
namespace {

constexpr size_t kFirstWords = 1u << 16;

// The same for (a, b) and (b, a).
uint64_t PairDigest(InsnRef a, InsnRef b, uint64_t word) {
  if (b < a) {
    std::swap(a, b);
  }
  uint64_t digest = MixBits(word);
  for (const uint64_t part :
       {uint64_t{a.thread}, a.insn, uint64_t{b.thread}, b.insn}) {
    digest = MixBits(digest * 0x9e3779b97f4a7c15u + part);
  }
  return digest;
}

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
    NoteOverlaps(access, word);
    NotePair(access, word.write);
    if (Writes(access.kind)) {
      NotePair(access, word.read);
    }
  }
  const Last last = {.insn = access.at.insn,
                     .lo_tick = access.lo_tick,
                     .hi_tick = access.hi_tick,
                     .thread = thread,
                     .kind = access.kind};
  if (Writes(access.kind)) {
    word.write = last;
  }
  if (Reads(access.kind)) {
    word.read = last;
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
  return last.thread != kNobody && last.thread != access.at.thread &&
         !Apart(access, last) && (Writes(last.kind) || Writes(access.kind));
}

void WordTable::NoteOverlaps(const WordAccess& access, const Word& word) {
  std::vector<Last>& open = open_[word.number];
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

void WordTable::NotePair(const WordAccess& access, const Last& last) {
  if (!Overlap(access, last)) {
    return;
  }
  const ContestedPair pair = {.first = {last.thread, last.insn},
                              .second = access.at,
                              .word = access.word};
  const uint64_t digest = PairDigest(pair.first, pair.second, pair.word);
  const auto [entry, added] = pair_index_.emplace(digest, pairs_.size());
  if (!added) {
    pairs_[entry->second] = pair;
    return;
  }
  if (pairs_.size() >= limits_.pairs_max) {
    pair_index_.erase(entry);
    return;
  }
  pairs_of_word_[access.word].push_back(pairs_.size());
  pairs_.push_back(pair);
}

std::vector<ContestedPair> WordTable::PairsOf(uint64_t word) const {
  std::vector<ContestedPair> result;
  const auto found = pairs_of_word_.find(word);
  if (found != pairs_of_word_.end()) {
    for (const size_t index : found->second) {
      result.push_back(pairs_[index]);
    }
  }
  return result;
}

}  // namespace clew::symbolic
