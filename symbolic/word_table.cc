#include "symbolic/word_table.h"

#include <algorithm>
#include <limits>

#include "common/digest.h"

namespace clew::symbolic {
namespace {

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
      recent_(threads),
      contested_(threads) {}

void WordTable::Note(const WordAccess& access) {
  const auto found = words_.find(access.word);
  if (found == words_.end() && words_.size() >= limits_.words_max) {
    ++words_dropped_;
    return;
  }
  Word& word = found != words_.end() ? found->second : words_[access.word];
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
    if (Reads(access.kind)) {
      auto& recent = recent_[thread];
      recent.push_front({.read = access, .foreign_write = std::nullopt});
      if (word.write.thread != kNobody && word.write.thread != thread) {
        recent.front().foreign_write =
            InsnRef{word.write.thread, word.write.insn};
      }
      if (recent.size() > limits_.recent_reads) {
        recent.pop_back();
      }
    }
  }
  const Last last = {.thread = thread,
                     .insn = access.at.insn,
                     .hi_tick = access.hi_tick,
                     .kind = access.kind};
  if (Writes(access.kind)) {
    word.write = last;
  }
  if (Reads(access.kind)) {
    word.read = last;
  }
}

bool WordTable::IsShared(uint64_t word) const {
  const auto found = words_.find(word);
  return found != words_.end() && found->second.shared && found->second.written;
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

bool WordTable::Overlap(const WordAccess& access, const Last& last) const {
  return last.thread != kNobody && last.thread != access.at.thread &&
         last.hi_tick + slack_ticks_ >= access.lo_tick &&
         (Writes(last.kind) || Writes(access.kind));
}

void WordTable::NoteOverlaps(const WordAccess& access, Word& word) {
  std::erase_if(word.open, [&](const Last& last) {
    return last.hi_tick + slack_ticks_ < access.lo_tick ||
           (last.thread == access.at.thread && last.insn == access.at.insn &&
            last.kind == access.kind);
  });
  bool contested = false;
  for (const Last& last : word.open) {
    if (Overlap(access, last)) {
      contested_[last.thread].insert_or_assign(
          last.insn, WordAccess{.at = {last.thread, last.insn},
                                .word = access.word,
                                .kind = last.kind,
                                .lo_tick = 0,
                                .hi_tick = last.hi_tick});
      contested = true;
    }
  }
  if (contested) {
    contested_[access.at.thread].insert_or_assign(access.at.insn, access);
  }
  if (word.open.size() < limits_.open_max) {
    word.open.push_back({.thread = access.at.thread,
                         .insn = access.at.insn,
                         .hi_tick = access.hi_tick,
                         .kind = access.kind});
  }
}

void WordTable::NotePair(const WordAccess& access, const Last& last) {
  if (!Overlap(access, last)) {
    return;
  }
  const ContestedPair pair = {.first = {last.thread, last.insn},
                              .second = access.at,
                              .word = access.word,
                              .first_kind = last.kind,
                              .second_kind = access.kind};
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

std::vector<WordTable::RecentRead> WordTable::RecentReads(uint32_t thread,
                                                          uint64_t insn) const {
  std::vector<RecentRead> reads;
  uint64_t newest = insn;
  for (const RecentRead& recent : recent_[thread]) {
    // Entries of a future that was rolled back have larger numbers.
    if (recent.read.at.insn <= newest) {
      newest = recent.read.at.insn;
      reads.push_back(recent);
    }
  }
  return reads;
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

std::unordered_set<uint64_t> WordTable::ContestedWords() const {
  std::unordered_set<uint64_t> words;
  for (const auto& thread : contested_) {
    for (const auto& [insn, access] : thread) {
      words.insert(access.word);
    }
  }
  return words;
}

}  // namespace clew::symbolic
