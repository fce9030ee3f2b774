#ifndef CLEW_SOLVER_LAST_READS_H_
#define CLEW_SOLVER_LAST_READS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace clew::solver {

// The words that a thread read last.
class LastReads {
 public:
  void Note(uint64_t word) {
    const auto found = std::ranges::find(words_, word);
    const auto last = found == words_.end() ? words_.end() - 1 : found;
    std::rotate(words_.begin(), last, last + 1);
    words_.front() = word;
  }
  // How many others were read since; nullopt: it is not among the last ones.
  std::optional<uint32_t> Since(uint64_t word) const {
    const auto found = std::ranges::find(words_, word);
    return found == words_.end()
               ? std::nullopt
               : std::optional(static_cast<uint32_t>(found - words_.begin()));
  }

 private:
  std::array<uint64_t, 8> words_ = {};
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_LAST_READS_H_
