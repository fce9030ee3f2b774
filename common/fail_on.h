#ifndef CLEW_COMMON_FAIL_ON_H_
#define CLEW_COMMON_FAIL_ON_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew {

// Which exit status counts as a failure.
struct FailOn {
  enum class Rule : uint8_t {
    kNever,
    kPanics,  // 101, with which a panic ends a Rust program, and 2, as in Go
    kEquals,
    kDiffers,
  };
  Rule rule = Rule::kPanics;
  int32_t status = 0;
  bool Matches(int32_t exit_status) const;
};

// Reads "never", "panics", "exit!=N" or "exit=N", N in 0..255. Fails with
// kInvalidArgument for anything else.
[[nodiscard]] Result<FailOn> ParseFailOn(const std::string& text);
// Returns what ParseFailOn reads as the same rule.
std::string ToString(const FailOn& fail_on);

}  // namespace clew

#endif  // CLEW_COMMON_FAIL_ON_H_
