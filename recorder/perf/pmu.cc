#include "recorder/perf/pmu.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "common/text/parse_number.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder::perf {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kWordBits = 64;

// "config", "config1", "config2".
std::optional<uint8_t> ParseWord(std::string_view text) {
  constexpr std::string_view kConfig = "config";
  if (!text.starts_with(kConfig)) {
    return std::nullopt;
  }
  text.remove_prefix(kConfig.size());
  if (text.empty()) {
    return 0;
  }
  const auto word = ParseNumber<uint8_t>(text);
  return word && (*word == 1 || *word == 2) ? word : std::nullopt;
}

std::optional<ConfigField> ParseField(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto word = ParseWord(text.substr(0, colon));
  const std::string_view bits = text.substr(colon + 1);
  const size_t dash = bits.find('-');
  const auto lo = ParseNumber<uint8_t>(bits.substr(0, dash));
  const auto hi = dash == std::string_view::npos
                      ? lo
                      : ParseNumber<uint8_t>(bits.substr(dash + 1));
  if (!word || !lo || !hi || *lo > *hi || *hi >= kWordBits) {
    return std::nullopt;
  }
  return ConfigField{.word = *word, .lo = *lo, .hi = *hi};
}

// Names of the files of a folder; none where it is absent.
std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

// Every file of `folder` by `parse`, an optional-valued function of a line.
template <class Map, class Parse>
Status ReadAll(const std::string& folder, std::string_view wanted, Map& into,
               Parse parse) {
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const auto line = FirstLine(path);
    const auto value = line ? parse(*line) : std::nullopt;
    if (!value) {
      return CorruptInput("{}: {:?}, wanted {}", path, line.value_or(""),
                          wanted);
    }
    into.emplace(name, *value);
  }
  return {};
}

}  // namespace

Result<Pmu> Pmu::Discover(const std::string& sys) {
  Pmu pmu;
  pmu.folder_ = sys + "/bus/event_source/devices/intel_pt";
  const auto type = FirstLine(pmu.folder_ + "/type");
  if (!type) {
    return Unsupported(
        "no intel_pt event source ({} is absent): this CPU or virtual machine "
        "does not offer Intel PT; software recording, decode, solve and "
        "replay still work",
        pmu.folder_);
  }
  const auto number = ParseNumber<uint32_t>(*type);
  if (!number) {
    return CorruptInput("{}/type: {:?}, wanted a number", pmu.folder_, *type);
  }
  pmu.type_ = *number;
  CLEW_RETURN_IF_ERROR(ReadAll(pmu.folder_ + "/format",
                               "bits like \"config:14-17\"", pmu.fields_,
                               ParseField));
  CLEW_RETURN_IF_ERROR(ReadAll(
      pmu.folder_ + "/caps", "a hexadecimal number", pmu.capabilities_,
      [](std::string_view text) { return ParseNumber<uint64_t>(text, 16); }));
  const auto filters = FirstLine(pmu.folder_ + "/nr_addr_filters");
  pmu.address_filters_max_ =
      filters ? ParseNumber<uint32_t>(*filters).value_or(0) : 0;
  return pmu;
}

std::optional<ConfigField> Pmu::field(std::string_view name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t Pmu::capability(std::string_view name) const {
  const auto found = capabilities_.find(name);
  return found == capabilities_.end() ? 0 : found->second;
}

Status Pmu::Set(perf_event_attr& attr, std::string_view name,
                uint64_t value) const {
  const auto bits = field(name);
  if (!bits) {
    return Unsupported(
        "intel_pt: wanted the field {:?}, found no {}/format/{}: this kernel "
        "or CPU cannot do that",
        name, folder_, name);
  }
  const unsigned width = bits->hi - bits->lo + 1u;
  const uint64_t mask =
      width == kWordBits ? UINT64_MAX : (uint64_t{1} << width) - 1;
  if (value > mask) {
    return InvalidArgument(
        "intel_pt: wanted {} in the field {:?}, found room for at most {}; "
        "choose a smaller value",
        value, name, mask);
  }
  const auto store = [&](auto& word) {
    word = (word & ~(mask << bits->lo)) | value << bits->lo;
  };
  bits->word == 0   ? store(attr.config)
  : bits->word == 1 ? store(attr.config1)
                    : store(attr.config2);
  return {};
}

}  // namespace clew::recorder::perf
