#include "collector/service/daily_usage.h"

#include <charconv>
#include <filesystem>
#include <span>
#include <system_error>

#include "common/units.h"

namespace clew::collector {
namespace {

constexpr std::string_view kUsageMagic = "clew usage 1 ";

// Takes a number and the one character behind it off `text`.
template <class T>
bool TakeNumber(std::string_view& text, char behind, T* number) {
  const char* end = text.data() + text.size();
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc() || at == end || *at != behind) {
    return false;
  }
  text.remove_prefix(static_cast<size_t>(at - text.data()) + 1);
  return true;
}

}  // namespace

Result<std::unique_ptr<DailyUsage>> DailyUsage::Open(FileSystem& files,
                                                     const Options& options) {
  std::unique_ptr<DailyUsage> usage(new DailyUsage(files, options));
  usage->day_ = usage->Today();
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    return usage;
  }
  const auto text = ReadWholeText(options.path);
  const Status read =
      text ? usage->Parse(*text) : std::unexpected(text.error());
  if (!read) {
    usage->damage_ = read.error().message;
    usage->changed_ = true;
  }
  const std::lock_guard lock(usage->mutex_);
  usage->Turn();
  return usage;
}

Status DailyUsage::Parse(std::string_view text) {
  const auto corrupt = [&] {
    return CorruptInput(
        "{:?} is damaged: {} hosts of what was sent today are read, the others "
        "begin at 0",
        options_.path, bytes_.size());
  };
  if (!text.starts_with(kUsageMagic)) {
    return corrupt();
  }
  text.remove_prefix(kUsageMagic.size());
  if (!TakeNumber(text, '\n', &day_)) {
    day_ = Today();
    return corrupt();
  }
  while (!text.empty()) {
    uint64_t bytes = 0;
    const size_t line = text.find('\n');
    if (line == std::string_view::npos || !TakeNumber(text, ' ', &bytes)) {
      return corrupt();
    }
    const size_t end = text.find('\n');
    bytes_[std::string(text.substr(0, end))] = bytes;
    text.remove_prefix(end + 1);
  }
  return {};
}

int64_t DailyUsage::Today() const { return options_.now_s() / kDay_s; }

void DailyUsage::Turn() {
  if (const int64_t today = Today(); today != day_) {
    day_ = today;
    bytes_.clear();
    changed_ = true;
  }
}

Status DailyUsage::Check(const std::string& host, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Turn();
  const auto at = bytes_.find(host);
  if (at == bytes_.end() && bytes_.size() >= kHostsMax) {
    return LimitReached("{} hosts have sent bundles today, the limit",
                        bytes_.size());
  }
  const uint64_t used = at == bytes_.end() ? 0 : at->second;
  if (used > options_.limit_bytes || bytes > options_.limit_bytes - used) {
    return LimitReached(
        "quota exceeded: host {:?} has sent {} bytes today (UTC), {} more are "
        "above its limit of {} a day; wait until tomorrow, or raise "
        "host_bytes_per_day of the collector",
        host, used, bytes, options_.limit_bytes);
  }
  return {};
}

void DailyUsage::Add(const std::string& host, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Turn();
  bytes_[host] += bytes;
  changed_ = true;
}

uint64_t DailyUsage::LeftToday(const std::string& host) {
  const std::lock_guard lock(mutex_);
  Turn();
  const auto at = bytes_.find(host);
  const uint64_t used = at == bytes_.end() ? 0 : at->second;
  return used < options_.limit_bytes ? options_.limit_bytes - used : 0;
}

Status DailyUsage::Save() {
  const std::lock_guard save_lock(save_mutex_);
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!changed_) {
      return {};
    }
    changed_ = false;
    text = fmt::format("{}{}\n", kUsageMagic, day_);
    for (const auto& [host, bytes] : bytes_) {
      text += fmt::format("{} {}\n", bytes, host);
    }
  }
  const std::string partial = options_.path + ".partial";
  Status saved =
      WriteWholeFile(files_, partial, std::as_bytes(std::span(text)));
  if (saved) {
    saved = files_.Rename(partial, options_.path);
  }
  if (!saved) {
    const std::lock_guard lock(mutex_);
    changed_ = true;
  }
  return saved;
}

}  // namespace clew::collector
