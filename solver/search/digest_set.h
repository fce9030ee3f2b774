#ifndef CLEW_SOLVER_SEARCH_DIGEST_SET_H_
#define CLEW_SOLVER_SEARCH_DIGEST_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clew::solver {

// A set of 64-bit digests with a limit on its memory: 8 bytes an entry, at
// most 2/3 full. Once the limit is reached it takes no more and says so.
class DigestSet {
 public:
  explicit DigestSet(uint64_t memory_bytes_max)
      : memory_bytes_max_(memory_bytes_max), slots_(kSlotsMin, 0) {}

  bool Contains(uint64_t digest) const {
    return digest == 0 ? has_zero_ : slots_[Find(digest)] == digest;
  }

  // Adds a digest. Returns false if there is no room for one more.
  bool Insert(uint64_t digest) {
    if (digest == 0) {
      has_zero_ = true;
      return true;
    }
    if (count_ * 3 >= slots_.size() * 2 && !Grow()) {
      return false;
    }
    uint64_t& slot = slots_[Find(digest)];
    count_ += slot == digest ? 0 : 1;
    slot = digest;
    return true;
  }

  size_t size() const { return count_ + (has_zero_ ? 1 : 0); }

 private:
  static constexpr size_t kSlotsMin = 1024;  // a power of two

  size_t Find(uint64_t digest) const {
    const size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>(digest * 0x9e3779b97f4a7c15u >> 17) & mask;
    while (slots_[i] != 0 && slots_[i] != digest) {
      i = (i + 1) & mask;
    }
    return i;
  }

  bool Grow() {
    // While growing, both tables exist.
    if (slots_.size() * sizeof(uint64_t) * 3 > memory_bytes_max_) {
      return false;
    }
    std::vector<uint64_t> old(slots_.size() * 2, 0);
    old.swap(slots_);
    for (uint64_t digest : old) {
      if (digest != 0) {
        slots_[Find(digest)] = digest;
      }
    }
    return true;
  }

  uint64_t memory_bytes_max_;
  std::vector<uint64_t> slots_;
  size_t count_ = 0;
  bool has_zero_ = false;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_DIGEST_SET_H_
