#include "daemon/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bundle/manifest/manifest_edit.h"
#include "common/fd.h"
#include "common/utf8.h"
#include "daemon/config.h"

namespace clew::daemon {
namespace {

using bundle::EditManifest;
using nlohmann::json;

constexpr int64_t kBeforeS = 60;
constexpr int64_t kAfterS = 10;
constexpr char kNone = '!';  // before why; no line of JSON begins so
constexpr size_t kNameBytesMax = 255;

std::string FileOf(const std::string& folder) {
  return folder + "/journal.json";
}

// A field is a string, or an array of bytes where it is no text.
std::string TextOf(const json& line, const char* field, size_t bytes_max) {
  const auto found = line.find(field);
  if (found == line.end()) {
    return {};
  }
  if (!found->is_string()) {
    return "(bytes that are no text)";
  }
  return Utf8(found->get<std::string>().substr(0, bytes_max));
}

int64_t NumberOf(const json& line, const char* field) {
  return strtoll(TextOf(line, field, kNameBytesMax).c_str(), nullptr, 10);
}

std::vector<JournalLine> Parse(std::string_view text) {
  std::vector<JournalLine> lines;
  while (!text.empty() && lines.size() < kJournalLinesMax) {
    const size_t end = std::min(text.find('\n'), text.size());
    const json line = json::parse(text.substr(0, end), nullptr, false);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.is_object()) {
      continue;  // the last one, which is cut
    }
    lines.push_back(
        {.at_us = NumberOf(line, "__REALTIME_TIMESTAMP"),
         .process = static_cast<int32_t>(NumberOf(line, "_PID")),
         .unit = TextOf(line, "_SYSTEMD_UNIT", kNameBytesMax),
         .program = TextOf(line, "SYSLOG_IDENTIFIER", kNameBytesMax),
         .priority = static_cast<uint32_t>(NumberOf(line, "PRIORITY") & 7),
         .message = TextOf(line, "MESSAGE", kJournalMessageBytesMax)});
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace

// Matches of one field are alternatives; "+" is one between groups
// (journalctl(1)).
std::vector<std::string> JournalCommand(const std::string& journalctl,
                                        const Trigger& trigger) {
  const int64_t at_s = trigger.at_ns / 1'000'000'000;
  std::vector<std::string> words = {
      journalctl,
      "--quiet",
      "--no-pager",
      "--reverse",
      "--output=json",
      "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID,_SYSTEMD_UNIT",
      fmt::format("--lines={}", kJournalLinesMax),
      fmt::format("--since=@{}", at_s - kBeforeS),
      fmt::format("--until=@{}", at_s + kAfterS)};
  std::vector<std::string> groups;
  if (trigger.process > 0) {
    groups.push_back(fmt::format("_PID={}", trigger.process));
  }
  if (IsUnitName(trigger.unit)) {
    groups.push_back("_SYSTEMD_UNIT=" + trigger.unit);
    groups.push_back("UNIT=" + trigger.unit);
  }
  for (const std::string& group : groups) {
    if (group != groups.front()) {
      words.emplace_back("+");
    }
    words.push_back(group);
  }
  return words;
}

Status KeepJournal(const std::string& folder, std::string_view output,
                   std::string_view why) {
  DropJournal(folder);
  const std::string path = FileOf(folder);
  const Fd file(open(path.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     0600));
  const std::string text =
      output.empty() ? kNone + std::string(why) : std::string(output);
  if (file.get() < 0 || write(file.get(), text.data(), text.size()) !=
                            static_cast<ssize_t>(text.size())) {
    return SystemError(errno, fmt::format("cannot write {:?}", path));
  }
  return {};
}

Status TakeJournal(FileSystem& files, const std::string& folder) {
  const std::string path = FileOf(folder);
  if (!Exists(path)) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  Journal journal;
  if (text.starts_with(kNone)) {
    journal.why = Utf8(std::string(text.substr(1, kJournalMessageBytesMax)));
  } else {
    journal.lines = Parse(text);
  }
  CLEW_RETURN_IF_ERROR(
      EditManifest(files, folder, {.journal = std::move(journal)}));
  CLEW_RETURN_IF_ERROR(files.RemoveAll(path));
  return files.SyncDirectory(folder);
}

void DropJournal(const std::string& folder) { unlink(FileOf(folder).c_str()); }

}  // namespace clew::daemon
