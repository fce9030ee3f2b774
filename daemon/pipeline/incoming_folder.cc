#include "daemon/pipeline/incoming_folder.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace clew::daemon {

IncomingFolder::~IncomingFolder() {
  if (inotify_.get() >= 0) {
    parts_.loop.Forget(inotify_.get());
  }
}

Status IncomingFolder::Watch(std::function<void()> came) {
  const std::string folder = parts_.spool.Folder(Stage::kIncoming);
  came_ = std::move(came);
  inotify_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (inotify_.get() < 0 ||
      inotify_add_watch(inotify_.get(), folder.c_str(),
                        IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) < 0) {
    return SystemError(errno, fmt::format("cannot watch {:?}", folder));
  }
  return parts_.loop.Watch(inotify_.get(), EPOLLIN, [this](uint32_t) {
    std::array<char, 4096> events = {};
    // What came is looked up in the folder.
    while (read(inotify_.get(), events.data(), events.size()) > 0) {
    }
    came_();
  });
}

void IncomingFolder::CleanUp() {
  Spool& spool = parts_.spool;
  if (const Status cleaned = spool.RemoveDeadWriters(); !cleaned) {
    parts_.incidents.Add("spool-failed", cleaned.error());
  }
  (void)spool.SweepTrash();
  if (spool.IsIncomingTooLarge()) {
    parts_.incidents.Add(
        "incoming-too-large",
        {ErrorCode::kLimit,
         fmt::format("{:?} has more than {} entries: some are not looked at "
                     "until others are removed",
                     spool.Folder(Stage::kIncoming), Spool::kWalkMax)});
  }
  if (const auto gone = spool.EnforceQuota(config_.incoming_user_bytes);
      !gone) {
    parts_.incidents.Add("spool-failed", gone.error());
  } else if (!gone->empty()) {
    parts_.counters.over_quota += gone->size();
    parts_.log.Write(Priority::kWarning, "over-quota",
                     {{"count", fmt::format("{}", gone->size())},
                      {"oldest", gone->front()}});
  }
  if (const auto junk = spool.RemoveOldJunk(parts_.clock.WallNs()); !junk) {
    parts_.incidents.Add("spool-failed", junk.error());
  } else if (*junk > 0) {
    parts_.counters.junk += *junk;
    parts_.log.Write(Priority::kInfo, "junk-removed",
                     {{"count", fmt::format("{}", *junk)}});
  }
}

}  // namespace clew::daemon
