#ifndef CLEW_SOLVER_SEARCH_WORD_SET_H_
#define CLEW_SOLVER_SEARCH_WORD_SET_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace clew::solver {

// A small set of words (WordOf), sorted.
class WordSet {
 public:
  bool Contains(uint64_t word) const {
    return std::ranges::binary_search(words_, word);
  }
  bool empty() const { return words_.empty(); }
  size_t size() const { return words_.size(); }

  void Add(uint64_t word) {
    const auto at = std::ranges::lower_bound(words_, word);
    if (at == words_.end() || *at != word) {
      words_.insert(at, word);
    }
  }
  void Add(const WordSet& other) {
    if (other.empty()) {
      return;
    }
    std::vector<uint64_t> both;
    both.reserve(words_.size() + other.words_.size());
    std::ranges::set_union(words_, other.words_, std::back_inserter(both));
    words_ = std::move(both);
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_WORD_SET_H_
