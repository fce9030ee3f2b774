#include "tests/fidelity/expected.h"

#include <array>

namespace clew::fidelity {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The reason may have a bar in it.
std::array<std::string_view, 3> Fields(std::string_view line) {
  std::array<std::string_view, 3> fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool last = i + 1 == fields.size();
    const size_t end =
        last ? line.size() : std::min(line.find('|'), line.size());
    fields[i] = Trimmed(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

Status AddRow(Table& table, int number, std::string_view line) {
  const auto [program, name, reason] = Fields(line);
  const auto which = ClassNamed(name);
  if (program.empty() || reason.empty() || !which || *which == Class::kSame) {
    return CorruptInput(
        "line {}: {:?}, wanted: program | class | reason, with a class that is "
        "not the first one",
        number, line);
  }
  const bool added =
      table.try_emplace(std::string(program), *which, std::string(reason))
          .second;
  return added ? Status()
               : CorruptInput("line {}: program {:?} has a row already", number,
                              program);
}

}  // namespace

Result<Table> ReadTable(std::istream& text) {
  Table table;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (!line.empty() && line[0] != '#') {
      CLEW_RETURN_IF_ERROR(AddRow(table, number, line));
    }
  }
  return table;
}

std::string RowOf(const std::string& program, const Expected& expected) {
  return fmt::format("{} | {} | {}", program, NameOf(expected.which),
                     expected.reason);
}

}  // namespace clew::fidelity
