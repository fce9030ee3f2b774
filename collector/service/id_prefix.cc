#include "collector/service/id_prefix.h"

#include <fmt/format.h>

#include <algorithm>

#include "collector/store/chunk_store.h"

namespace clew::collector {
namespace {

constexpr size_t kDigitsMin = 4;
constexpr size_t kDigitsMax = 2 * Sha256::kBytes;

bool IsDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

Status CheckIdPrefix(std::string_view prefix_untrusted, std::string_view what,
                     std::string_view list) {
  if (prefix_untrusted.size() >= kDigitsMin &&
      prefix_untrusted.size() <= kDigitsMax &&
      std::ranges::all_of(prefix_untrusted, IsDigit)) {
    return {};
  }
  return InvalidArgument(
      "{:?} is no {}'s id, wanted {} to {} lower-case hexadecimal digits; "
      "'{}' prints them",
      prefix_untrusted.substr(0, kDigitsMax), what, kDigitsMin, kDigitsMax,
      list);
}

}  // namespace clew::collector
