#include "solver/search/word_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/digest.h"

namespace clew::solver {
namespace {

constexpr size_t kFirstWords = 1u << 16;

}  // namespace

WordTable::WordTable(size_t threads, uint64_t slack_ticks,
                     WordTableLimits limits)
    : slack_ticks_(slack_ticks),
      limits_(limits),
      words_(kFirstWords),
      contested_(threads) {}

size_t WordTable::SlotOf(uint64_t number) const {
  const size_t mask = words_.size() - 1;
  size_t slot = MixBits(number) & mask;
  while (words_[slot].number != number && words_[slot].number != kEmpty) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

WordTable::Word* WordTable::Find(uint64_t number) {
  Word& word = words_[SlotOf(number)];
  if (word.number == number) {
    return &word;
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
    ++accesses_dropped_;
    return false;
  }
  Word& word = *found;
  const uint32_t thread = access.at.thread;
  if (word.owner == kNobody) {
    word.owner = thread;
  }
  if (!word.shared && word.owner != thread) {
    word.shared = true;
    ++shared_words_;
  }
  word.written = word.written || Writes(access.kind);
  if (word.shared) {
    NoteShared(access);
  }
  return word.shared && word.written;
}

std::unordered_set<uint64_t> WordTable::ContestedWords() const {
  std::unordered_set<uint64_t> words;
  for (const uint64_t word : contested_words_) {
    words.insert(word * kWordBytes / 8);
  }
  return words;
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

bool WordTable::IsTouched(uint64_t first, uint64_t last,
                          const std::set<size_t>& threads) const {
  const auto touched = [&](const Word& word) {
    return word.number != kEmpty &&
           (word.shared ? !threads.empty() : threads.contains(word.owner));
  };
  if (last - first >= words_.size()) {
    return std::ranges::any_of(words_, [&](const Word& word) {
      return word.number >= first && word.number <= last && touched(word);
    });
  }
  for (uint64_t number = first; number <= last; ++number) {
    if (touched(words_[SlotOf(number)])) {
      return true;
    }
  }
  return false;
}

// An access until `hi_tick` is over before one from `lo_tick` on.
bool WordTable::Before(uint64_t hi_tick, uint64_t lo_tick) const {
  return lo_tick > slack_ticks_ && lo_tick - slack_ticks_ > hi_tick;
}

// Either may be the earlier one: what is known may be from another run.
bool WordTable::Conflict(const GroupKey& a, const GroupKey& b) const {
  return a.thread != b.thread && (Writes(a.kind) || Writes(b.kind)) &&
         !Before(a.hi_tick, b.lo_tick) && !Before(b.hi_tick, a.lo_tick);
}

void WordTable::NoteShared(const WordAccess& access) {
  Groups& groups = groups_[access.word];
  const GroupKey key = {.lo_tick = access.lo_tick,
                        .hi_tick = access.hi_tick,
                        .thread = access.at.thread,
                        .kind = access.kind};
  auto found = groups.by_time.find(key);
  if (found == groups.by_time.end()) {
    if (!HasRoom()) {
      ++accesses_dropped_;
      return;
    }
    ++kept_;
    const bool contested = Compare(groups, access.word, key);
    found = groups.by_time.emplace(key, Group{.contested = contested}).first;
    groups.longest_ticks =
        std::max(groups.longest_ticks, access.hi_tick - access.lo_tick);
  }
  if (found->second.contested) {
    contested_[access.at.thread].insert_or_assign(access.at.insn, access);
    contested_words_.insert(access.word);
  } else {
    Keep(found->second, access.at.insn);
  }
}

bool WordTable::Compare(Groups& groups, uint64_t word, const GroupKey& key) {
  const auto back = [](uint64_t tick, uint64_t by) {
    return tick - std::min(tick, by);
  };
  const uint64_t first =
      back(back(key.lo_tick, slack_ticks_), groups.longest_ticks);
  bool contested = false;
  auto other = groups.by_time.lower_bound(GroupKey{.lo_tick = first});
  for (; other != groups.by_time.end() &&
         !Before(key.hi_tick, other->first.lo_tick);
       ++other) {
    if (Conflict(key, other->first)) {
      contested = true;
      SetContested(word, other->first, other->second);
    }
  }
  return contested;
}

void WordTable::SetContested(uint64_t word, const GroupKey& key, Group& group) {
  group.contested = true;
  kept_ -= group.insns.size();
  for (const uint64_t insn : std::exchange(group.insns, {})) {
    contested_[key.thread].insert_or_assign(insn,
                                            WordAccess{.at = {key.thread, insn},
                                                       .word = word,
                                                       .kind = key.kind,
                                                       .lo_tick = key.lo_tick,
                                                       .hi_tick = key.hi_tick});
  }
}

void WordTable::Keep(Group& group, uint64_t insn) {
  const auto at = std::ranges::lower_bound(group.insns, insn);
  if (at != group.insns.end() && *at == insn) {
    return;
  }
  if (!HasRoom()) {
    ++accesses_dropped_;
    return;
  }
  ++kept_;
  group.insns.insert(at, insn);
}

}  // namespace clew::solver
