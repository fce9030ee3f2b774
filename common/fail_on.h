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
    kEquals,
    kDiffers,
    kPanics,  // what the runtimes of Rust (101) and Go (2) end with
  };
  Rule rule = Rule::kPanics;
  int32_t status = 0;  // of kEquals and kDiffers
  bool Matches(int32_t exit_status) const;
};

// Reads "exit!=N" or "exit=N", N in 0..255, "panics" or "never". Fails with
// kInvalidArgument for anything else.
[[nodiscard]] Result<FailOn> ParseFailOn(const std::string& text);

}  // namespace clew

#endif  // CLEW_COMMON_FAIL_ON_H_
