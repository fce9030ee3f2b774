#include "collector/upkeep/retention_clock.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/text/parse_number.h"

namespace clew::collector {
namespace {

constexpr std::string_view kClockMagic = "clew retention clock 1\n";

std::optional<int64_t> Load(const std::string& path) {
  const auto bytes = ReadWholeText(path);
  if (!bytes) {
    return std::nullopt;
  }
  std::string_view text = *bytes;
  if (!text.starts_with(kClockMagic) || !text.ends_with('\n')) {
    return std::nullopt;
  }
  text.remove_prefix(kClockMagic.size());
  text.remove_suffix(text.empty() ? 0 : 1);
  return ParseNumber<int64_t>(text);
}

}  // namespace

RetentionClock::RetentionClock(FileSystem& files, const std::string& path,
                               int64_t begin_s, uint64_t steady_s)
    : files_(files),
      path_(path),
      now_s_(Load(path).value_or(begin_s)),
      steady_s_(steady_s) {}

Status RetentionClock::Advance(int64_t wall_s, uint64_t steady_s) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    const auto passed =
        static_cast<int64_t>(steady_s - std::exchange(steady_s_, steady_s));
    now_s_ = std::max(now_s_, std::min(wall_s, now_s_ + 2 * passed));
    behind_ = wall_s - now_s_ > kLagMax_s;
    text = fmt::format("{}{}\n", kClockMagic, now_s_);
  }
  const std::string partial = path_ + ".partial";
  CLEW_RETURN_IF_ERROR(
      WriteWholeFile(files_, partial, std::as_bytes(std::span(text))));
  return files_.Rename(partial, path_);
}

int64_t RetentionClock::now_s() const {
  const std::lock_guard lock(mutex_);
  return now_s_;
}

bool RetentionClock::IsBehind() const {
  const std::lock_guard lock(mutex_);
  return behind_;
}

}  // namespace clew::collector
