#ifndef CLEW_FOLLOWER_KERNEL_UNDOABLE_H_
#define CLEW_FOLLOWER_KERNEL_UNDOABLE_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "common/check.h"

namespace clew::follower {

// A value that can be put back as it was at a mark, in LIFO order. It is copied
// whole when it first changes after a mark: for small values, which rarely
// change. A copy has the value and no marks.
template <class T>
class Undoable {
 public:
  using Mark = size_t;

  explicit Undoable(T value = T()) : value_(std::move(value)) {}
  Undoable(const Undoable& other) : value_(other.value_) {}
  Undoable(Undoable&&) noexcept = default;
  Undoable& operator=(const Undoable& other) {
    if (this != &other) {
      value_ = other.value_;
      DropMarks();
    }
    return *this;
  }
  Undoable& operator=(Undoable&&) noexcept = default;
  ~Undoable() = default;

  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

  // Returns the value, to be changed. The reference holds until the next mark.
  T& Change() {
    if (saved_.empty() ? marks_ > 0 : saved_.back().mark + 1 < marks_) {
      saved_.push_back({.mark = marks_ - 1, .value = value_});
    }
    return value_;
  }

  Mark SetMark() { return marks_++; }
  // Puts the value back as it was at `mark`. The mark stays, later ones are
  // dropped. REQUIRES: `mark` was set.
  void RollBack(Mark mark) {
    CLEW_CHECK(mark < marks_, "mark {} of {}", mark, marks_);
    for (; !saved_.empty() && saved_.back().mark >= mark; saved_.pop_back()) {
      value_ = std::move(saved_.back().value);
    }
    marks_ = mark + 1;
  }
  void DropMarks() {
    saved_.clear();
    marks_ = 0;
  }

 private:
  struct Saved {
    Mark mark = 0;  // the last one set before the change
    T value;
  };

  T value_;
  std::vector<Saved> saved_;
  size_t marks_ = 0;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_UNDOABLE_H_
