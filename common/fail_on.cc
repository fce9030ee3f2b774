#include "common/fail_on.h"

#include <string_view>

#include "common/text/parse_number.h"

namespace clew {
namespace {

constexpr std::string_view kNever = "never";
constexpr std::string_view kPanics = "panics";
constexpr std::string_view kDiffers = "exit!=";
constexpr std::string_view kEquals = "exit=";

constexpr int32_t kRustPanic = 101;
constexpr int32_t kGoPanic = 2;

// Takes `prefix` away if `text` begins with it.
bool Skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool FailOn::Matches(int32_t exit_status, bool has_reported) const {
  switch (rule) {
    case Rule::kNever:
      return false;
    case Rule::kPanics:
      return exit_status == kRustPanic || exit_status == kGoPanic ||
             (has_reported && exit_status != 0);
    case Rule::kReports:
      return exit_status == kRustPanic || (has_reported && exit_status != 0);
    case Rule::kEquals:
      return exit_status == status;
    case Rule::kDiffers:
      return exit_status != status;
  }
  return false;
}

Result<FailOn> ParseFailOn(const std::string& text) {
  if (text == kNever || text == kPanics) {
    return FailOn{.rule = text == kNever ? FailOn::Rule::kNever
                                         : FailOn::Rule::kPanics};
  }
  FailOn fail_on;
  std::string_view rest = text;
  if (Skip(rest, kDiffers)) {
    fail_on.rule = FailOn::Rule::kDiffers;
  } else if (Skip(rest, kEquals)) {
    fail_on.rule = FailOn::Rule::kEquals;
  } else {
    rest = "";
  }
  const auto status = ParseNumber<uint8_t>(rest);
  if (!status) {
    return InvalidArgument(
        "{:?} is no rule; write exit!=N or exit=N, N 0..255, panics or never",
        text);
  }
  fail_on.status = *status;
  return fail_on;
}

std::string ToString(const FailOn& fail_on) {
  switch (fail_on.rule) {
    case FailOn::Rule::kNever:
      return std::string(kNever);
    case FailOn::Rule::kPanics:
    case FailOn::Rule::kReports:
      return std::string(kPanics);
    case FailOn::Rule::kEquals:
      return fmt::format("{}{}", kEquals, fail_on.status);
    case FailOn::Rule::kDiffers:
      return fmt::format("{}{}", kDiffers, fail_on.status);
  }
  return std::string(kNever);
}

}  // namespace clew
