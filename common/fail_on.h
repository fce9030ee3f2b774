#ifndef CLEW_COMMON_FAIL_ON_H_
#define CLEW_COMMON_FAIL_ON_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew {

// Which exit status counts as a failure.
struct FailOn {
  enum class Rule : uint8_t { kNever, kEquals, kDiffers };
  Rule rule = Rule::kNever;
  int32_t status = 0;
  bool Matches(int32_t exit_status) const;
};

// Reads "exit!=N" or "exit=N", N in 0..255. Fails with kInvalidArgument for
// anything else.
[[nodiscard]] Result<FailOn> ParseFailOn(const std::string& text);

}  // namespace clew

#endif  // CLEW_COMMON_FAIL_ON_H_
