#ifndef CLEW_TESTS_SUPPORT_RANDOM_LINES_H_
#define CLEW_TESTS_SUPPORT_RANDOM_LINES_H_

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>

#include "common/digest.h"

namespace clew::test {

// Lines of pseudo-random decimal numbers, the same ones each time: this many
// bytes and what ends the last line.
inline std::string RandomLines(size_t size_bytes) {
  Random random(1);
  std::string lines;
  while (lines.size() < size_bytes) {
    fmt::format_to(std::back_inserter(lines), "{}\n", random.Below(1'000'000));
  }
  return lines;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_RANDOM_LINES_H_
