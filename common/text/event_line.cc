#include "common/text/event_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace clew {
namespace {

bool IsPlain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
  });
}

void Append(std::string& line, std::string_view key, std::string_view value) {
  line += fmt::format("{}=", key);
  line += IsPlain(value) ? std::string(value) : fmt::format("{:?}", value);
}

}  // namespace

std::string EventLine(Priority priority, bool for_journald,
                      std::string_view event,
                      std::span<const EventField> fields) {
  std::string line;
  if (for_journald) {
    line = fmt::format("<{}>", static_cast<int>(priority));
  }
  Append(line, "event", event);
  for (const auto& [key, value] : fields) {
    line += ' ';
    Append(line, key, value);
  }
  line += '\n';
  return line;
}

}  // namespace clew
