#include "recorder/perf/sysfs.h"

#include <algorithm>
#include <fstream>

#include "common/text/parse_number.h"

namespace clew::recorder::perf {
namespace {

struct CoreRange {
  uint32_t first, last;
};

std::optional<CoreRange> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = ParseNumber<uint32_t>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos
                        ? first
                        : ParseNumber<uint32_t>(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= kCoresMax) {
    return std::nullopt;
  }
  return CoreRange{*first, *last};
}

}  // namespace

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  return line;
}

Result<std::vector<CoreId>> ParseCoreList(std::string_view text) {
  std::vector<CoreId> cores;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto range = ParseRange(text.substr(begin, end - begin));
    if (!range || (!cores.empty() && CoreId(range->first) <= cores.back())) {
      return CorruptInput("{:?} is no list of CPUs like \"0-3,8\"", text);
    }
    for (uint32_t core = range->first; core <= range->last; ++core) {
      cores.emplace_back(core);
    }
    begin = end + 1;
  }
  return cores;
}

Result<std::vector<CoreId>> OnlineCores(const std::string& sys) {
  const std::string path = sys + "/devices/system/cpu/online";
  const auto line = FirstLine(path);
  if (!line) {
    return Unsupported("{}: cannot be read; is sysfs mounted?", path);
  }
  auto cores = ParseCoreList(*line);
  if (!cores) {
    return CorruptInput("{}: {}", path, cores.error().message);
  }
  return cores;
}

}  // namespace clew::recorder::perf
