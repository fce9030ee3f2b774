#include "recorder/software/raw_events.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "common/os/file.h"
#include "common/text/one_line.h"

namespace clew::recorder {
namespace {

// Words separated by single blanks; the rest of the line as one.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view Next() {
    const size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    rest_ = blank == rest_.npos ? "" : rest_.substr(blank + 1);
    return word;
  }
  std::string_view rest() const { return rest_; }

  // Reads a number; a bad one makes ok() false.
  template <class T>
  T Number() {
    const std::string_view word = Next();
    T value = 0;
    const auto [at, error] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    ok_ = ok_ && error == std::errc() && at == word.data() + word.size();
    return value;
  }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<RawEvent::Kind> KindOf(std::string_view word) {
  using Kind = RawEvent::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"in", Kind::kSwitchIn}, {"out", Kind::kSwitchOut}, {"fork", Kind::kFork},
      {"exit", Kind::kExit},   {"comm", Kind::kComm},     {"mmap", Kind::kMmap},
  };
  for (const auto& [name, kind] : kKinds) {
    if (name == word) {
      return kind;
    }
  }
  return std::nullopt;
}

void ParseRest(Words& words, RawEvent& event) {
  switch (event.kind) {
    case RawEvent::Kind::kSwitchIn:
      return;
    case RawEvent::Kind::kSwitchOut:
      event.flag = words.Number<int>() != 0;
      return;
    case RawEvent::Kind::kFork:
    case RawEvent::Kind::kExit:
      event.other = Tid(words.Number<int32_t>());
      return;
    case RawEvent::Kind::kComm:
      event.flag = words.Number<int>() != 0;
      event.text = UnescapeLine(words.rest());
      return;
    case RawEvent::Kind::kMmap:
      event.addr = words.Number<uint64_t>();
      event.size_bytes = words.Number<uint64_t>();
      event.file_offset = words.Number<uint64_t>();
      event.prot = words.Number<uint32_t>();
      event.text = UnescapeLine(words.rest());
      return;
  }
}

}  // namespace

Result<RawEvent> ParseRawEvent(const std::string& line) {
  Words words(line);
  const auto kind = KindOf(words.Next());
  RawEvent event;
  if (kind.has_value()) {
    event.kind = *kind;
    event.core = CoreId(words.Number<uint32_t>());
    event.thread = Tid(words.Number<int32_t>());
    event.time = TscTicks(words.Number<uint64_t>());
    ParseRest(words, event);
  }
  if (!kind.has_value() || !words.ok()) {
    return CorruptInput("{:?} is no event of the plugin", line);
  }
  return event;
}

Status ForEachRawEvent(const std::string& path,
                       const std::function<Status(const RawEvent&)>& take) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()),
                        file.bytes().size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    CLEW_ASSIGN_OR_RETURN(event,
                          ParseRawEvent(std::string(rest.substr(0, end))));
    CLEW_RETURN_IF_ERROR(take(event));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
  }
  return {};
}

}  // namespace clew::recorder
