#include "common/text/config_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "common/os/file.h"
#include "common/text/words.h"

namespace clew {
namespace {

bool IsKey(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

// The digits at the start of `text`, and what is behind them.
std::optional<uint64_t> LeadingNumber(std::string_view text,
                                      std::string_view* rest) {
  uint64_t number = 0;
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  *rest = text.substr(static_cast<size_t>(at - text.data()));
  return number;
}

}  // namespace

Result<ConfigFile> ConfigFile::Parse(std::string_view text,
                                     std::string source) {
  ConfigFile file;
  file.source_ = std::move(source);
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    CLEW_RETURN_IF_ERROR(
        file.Add(Trimmed(text.substr(0, end), kLineBlanks), ++number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return file;
}

Result<ConfigFile> ConfigFile::Read(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > kBytesMax) {
    return InvalidArgument("{}: {} bytes, at most {} are read", path,
                           bytes.size(), kBytesMax);
  }
  return Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
               path);
}

Status ConfigFile::Add(std::string_view line, size_t number) {
  if (line.empty() || line.front() == '#') {
    return {};
  }
  if (line.front() == '[') {
    return AddSection(line, number);
  }
  const size_t equals = line.find('=');
  const std::string_view key = Trimmed(line.substr(0, equals), kLineBlanks);
  if (equals == std::string_view::npos || !IsKey(key)) {
    return At(number, "{:?} is neither key = value, [section] nor # comment",
              line);
  }
  const std::string section = sections_.empty() ? "" : sections_.back();
  for (const Entry& entry : entries_) {
    if (entry.section == section && entry.key == key) {
      return At(number, "{} is there already, in line {}", key, entry.line);
    }
  }
  entries_.push_back(
      {.section = section,
       .key = std::string(key),
       .value = std::string(Trimmed(line.substr(equals + 1), kLineBlanks)),
       .line = number});
  return {};
}

Status ConfigFile::AddSection(std::string_view line, size_t number) {
  if (line.size() < 3 || line.back() != ']') {
    return At(number, "{:?} is no section, wanted [name]", line);
  }
  const std::string name(Trimmed(line.substr(1, line.size() - 2), kLineBlanks));
  if (std::ranges::find(sections_, name) != sections_.end()) {
    return At(number, "section {:?} is there twice", name);
  }
  sections_.push_back(name);
  return {};
}

ConfigFile::Entry* ConfigFile::Ask(std::string_view section,
                                   std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) {
    known_.emplace_back(key);
  }
  const auto at = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.section == section && entry.key == key;
  });
  if (at == entries_.end()) {
    return nullptr;
  }
  at->asked = true;
  return &*at;
}

Status ConfigFile::Text(std::string_view section, std::string_view key,
                        std::string* value) {
  if (const Entry* entry = Ask(section, key)) {
    *value = entry->value;
  }
  return {};
}

Status ConfigFile::Words(std::string_view section, std::string_view key,
                         std::vector<std::string>* value) {
  const Entry* entry = Ask(section, key);
  if (entry == nullptr) {
    return {};
  }
  value->clear();
  std::string_view rest = entry->value;
  for (std::string_view word = TakeWord(rest, kLineBlanks); !word.empty();
       word = TakeWord(rest, kLineBlanks)) {
    value->emplace_back(word);
  }
  return {};
}

Status ConfigFile::Flag(std::string_view section, std::string_view key,
                        bool* value) {
  const Entry* entry = Ask(section, key);
  if (entry == nullptr) {
    return {};
  }
  for (const std::string_view yes : {"yes", "true", "on", "1"}) {
    if (entry->value == yes) {
      *value = true;
      return {};
    }
  }
  for (const std::string_view no : {"no", "false", "off", "0"}) {
    if (entry->value == no) {
      *value = false;
      return {};
    }
  }
  return At(entry->line, "{} is {:?}, wanted yes or no", key, entry->value);
}

Status ConfigFile::Quantity(std::string_view section, std::string_view key,
                            const std::vector<Unit>& units, uint64_t min,
                            uint64_t max, std::string_view what,
                            uint64_t* value) {
  const Entry* entry = Ask(section, key);
  if (entry == nullptr) {
    return {};
  }
  const auto refuse = [&] {
    return At(entry->line, "{} is {:?}, wanted {} from {} to {}", key,
              entry->value, what, min, max);
  };
  std::string_view rest;
  const auto number = LeadingNumber(entry->value, &rest);
  uint64_t factor = 1;
  if (!rest.empty()) {
    const auto unit = std::ranges::find(units, rest.front(), &Unit::letter);
    if (rest.size() > 1 || unit == units.end()) {
      return refuse();
    }
    factor = unit->factor;
  }
  if (!number || *number > UINT64_MAX / factor || *number * factor < min ||
      *number * factor > max) {
    return refuse();
  }
  *value = *number * factor;
  return {};
}

Status ConfigFile::Number(std::string_view section, std::string_view key,
                          uint64_t min, uint64_t max, uint64_t* value) {
  return Quantity(section, key, {}, min, max, "a number", value);
}

Status ConfigFile::Bytes(std::string_view section, std::string_view key,
                         uint64_t min, uint64_t max, uint64_t* value) {
  return Quantity(section, key,
                  {{'K', uint64_t{1} << 10},
                   {'M', uint64_t{1} << 20},
                   {'G', uint64_t{1} << 30},
                   {'T', uint64_t{1} << 40}},
                  min, max, "bytes (K, M, G, T behind it)", value);
}

Status ConfigFile::Seconds(std::string_view section, std::string_view key,
                           uint64_t min, uint64_t max, uint64_t* value) {
  return Quantity(section, key,
                  {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}}, min, max,
                  "seconds (s, m, h, d behind it)", value);
}

Status ConfigFile::Finish() const {
  for (const Entry& entry : entries_) {
    if (!entry.asked) {
      return At(entry.line, "{:?} is no key{}; known are {}", entry.key,
                entry.section.empty() ? "" : " of [" + entry.section + "]",
                fmt::join(known_, ", "));
    }
  }
  return {};
}

}  // namespace clew
