#include "daemon/redact/take_journal.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "bundle/manifest/manifest_edit.h"
#include "common/bundle_facts.h"
#include "common/text/utf8.h"
#include "daemon/spool/journal.h"

namespace clew::daemon {
namespace {

using bundle::EditManifest;
using nlohmann::json;

constexpr size_t kNameBytesMax = 255;

// A field is a string, or an array of bytes if it is not text.
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

Status TakeJournal(FileSystem& files, const std::string& folder) {
  const std::string path = JournalPath(folder);
  if (!Exists(path)) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(contents, ReadWholeText(path));
  const std::string_view text = contents;
  Journal journal;
  if (text.starts_with(kNoJournal)) {
    journal.why = Utf8(std::string(text.substr(1, kJournalMessageBytesMax)));
  } else {
    journal.lines = Parse(text);
  }
  CLEW_RETURN_IF_ERROR(
      EditManifest(files, folder, {.journal = std::move(journal)}));
  CLEW_RETURN_IF_ERROR(files.RemoveAll(path));
  return files.SyncDirectory(folder);
}

}  // namespace clew::daemon
