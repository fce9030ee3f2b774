#include "bundle/perf_data/cpu_id.h"

#include <charconv>
#include <system_error>

namespace clew::bundle {
namespace {

constexpr std::string_view kIntel = "GenuineIntel";

// Takes ",NUMBER" off the front of `text`.
template <class Int>
bool TakeNumber(std::string_view& text, Int& number) {
  if (!text.starts_with(',')) {
    return false;
  }
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 1, end, number);
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return error == std::errc();
}

}  // namespace

CpuIdentity ParseCpuId(std::string_view text) {
  if (!text.starts_with(kIntel)) {
    return {};
  }
  text.remove_prefix(kIntel.size());
  CpuIdentity cpu{.is_intel = true};
  const bool known = TakeNumber(text, cpu.family) &&
                     TakeNumber(text, cpu.model) &&
                     TakeNumber(text, cpu.stepping) && text.empty();
  return known ? cpu : CpuIdentity{};
}

}  // namespace clew::bundle
