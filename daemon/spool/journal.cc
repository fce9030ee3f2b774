#include "daemon/spool/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "common/os/fd.h"
#include "daemon/config/config.h"

namespace clew::daemon {
namespace {

constexpr int64_t kBeforeS = 60;
constexpr int64_t kAfterS = 10;
}  // namespace

std::string JournalPath(const std::string& folder) {
  return folder + "/journal.json";
}

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
  const std::string path = JournalPath(folder);
  const Fd file(open(path.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     0600));
  const std::string text =
      output.empty() ? kNoJournal + std::string(why) : std::string(output);
  if (file.get() < 0 || write(file.get(), text.data(), text.size()) !=
                            static_cast<ssize_t>(text.size())) {
    return SystemError(errno, fmt::format("cannot write {:?}", path));
  }
  return {};
}

void DropJournal(const std::string& folder) {
  unlink(JournalPath(folder).c_str());
}

}  // namespace clew::daemon
