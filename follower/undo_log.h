#ifndef CLEW_FOLLOWER_UNDO_LOG_H_
#define CLEW_FOLLOWER_UNDO_LOG_H_

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "common/check.h"

namespace clew::follower {

// Keeps what is to be put back, in LIFO order, as far as a mark. Without marks
// nothing is kept. `Entry` is what one step changes. A copy is empty.
template <class Entry, class MemoryMark>
class UndoLog {
 public:
  using Mark = size_t;

  UndoLog() = default;
  UndoLog(const UndoLog&) {}
  UndoLog(UndoLog&&) noexcept = default;
  UndoLog& operator=(const UndoLog& other) {
    if (this != &other) {
      Clear();
    }
    return *this;
  }
  UndoLog& operator=(UndoLog&&) noexcept = default;
  ~UndoLog() = default;

  Mark SetMark(MemoryMark memory) {
    marks_.push_back({.entries = entries_.size(), .memory = memory});
    return marks_.size() - 1;
  }
  bool has_marks() const { return !marks_.empty(); }
  // Adds what is to be put back. REQUIRES: has_marks() is true.
  void Add(Entry entry) { entries_.push_back(std::move(entry)); }

  // Gives what was added since `mark` to `put_back`, the latest first. The mark
  // stays, later ones are dropped. Returns what SetMark was given.
  template <class PutBack>
  MemoryMark RollBack(Mark mark, const PutBack& put_back) {
    CLEW_CHECK(mark < marks_.size(), "mark {} of {}", mark, marks_.size());
    const Place place = marks_[mark];
    while (entries_.size() > place.entries) {
      put_back(entries_.back());
      entries_.pop_back();
    }
    marks_.resize(mark + 1);
    return place.memory;
  }

  void Clear() {
    entries_.clear();
    marks_.clear();
  }

 private:
  struct Place {
    size_t entries = 0;
    MemoryMark memory;
  };

  std::deque<Entry> entries_;
  std::vector<Place> marks_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_UNDO_LOG_H_
