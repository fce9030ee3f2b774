#ifndef CLEW_COMMON_FAIL_ON_H_
#define CLEW_COMMON_FAIL_ON_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew {

// Which end of a program that exits counts as a failure.
struct FailOn {
  enum class Rule : uint8_t {
    kNever,
    // 101, with which a panic ends a Rust program, and 2, as in Go; and any but
    // 0 of a program that has reported that it fails (IsFailureReport).
    kPanics,
    // Likewise, but 2 without a report means much else in what a program
    // starts.
    kReports,
    kEquals,
    kDiffers,
  };
  Rule rule = Rule::kPanics;
  int32_t status = 0;
  bool Matches(int32_t exit_status, bool has_reported) const;
};

// Reads "never", "panics", "exit!=N" or "exit=N", N in 0..255. Fails with
// kInvalidArgument for anything else.
[[nodiscard]] Result<FailOn> ParseFailOn(const std::string& text);
// Returns what ParseFailOn reads as the same rule.
std::string ToString(const FailOn& fail_on);

}  // namespace clew

#endif  // CLEW_COMMON_FAIL_ON_H_
