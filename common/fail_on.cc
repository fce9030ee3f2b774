#include "common/fail_on.h"

#include <string_view>

#include "common/text/parse_number.h"

namespace clew {
namespace {

// Rust: library/std/src/rt.rs, lang_start_internal. Go: runtime/panic.go,
// fatalpanic and fatalthrow.
constexpr int32_t kRustPanic = 101;
constexpr int32_t kGoPanic = 2;

}  // namespace

bool FailOn::Matches(int32_t exit_status) const {
  switch (rule) {
    case Rule::kNever:
      return false;
    case Rule::kEquals:
      return exit_status == status;
    case Rule::kDiffers:
      return exit_status != status;
    case Rule::kPanics:
      return exit_status == kRustPanic || exit_status == kGoPanic;
  }
  return false;
}

Result<FailOn> ParseFailOn(const std::string& text) {
  FailOn fail_on;
  if (text == "panics" || text == "never") {
    fail_on.rule =
        text == "never" ? FailOn::Rule::kNever : FailOn::Rule::kPanics;
    return fail_on;
  }
  std::string_view rest = text;
  if (rest.starts_with("exit!=")) {
    fail_on.rule = FailOn::Rule::kDiffers;
    rest.remove_prefix(6);
  } else if (rest.starts_with("exit=")) {
    fail_on.rule = FailOn::Rule::kEquals;
    rest.remove_prefix(5);
  } else {
    rest = "";
  }
  const auto status = ParseNumber<uint8_t>(rest);
  if (!status) {
    return InvalidArgument(
        "{:?} is no rule; write exit!=N or exit=N, N 0..255, panics, or never",
        text);
  }
  fail_on.status = *status;
  return fail_on;
}

}  // namespace clew
