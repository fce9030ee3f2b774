#include "daemon/source/host_look.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/bytes.h"
#include "recorder/images/image_file.h"

namespace clew::daemon {

recorder::ScannedProcess Scanned(int32_t process, const pb::LookedAt& looked) {
  recorder::ScannedProcess scanned{.process = process,
                                   .parent = looked.parent(),
                                   .threads = {},
                                   .mappings = {}};
  for (const pb::LookedThread& thread : looked.threads()) {
    scanned.threads.push_back(
        {.thread = thread.thread(), .name = thread.name()});
  }
  for (const pb::LookedMapping& mapping : looked.mappings()) {
    scanned.mappings.push_back({.addr = TraceeAddr(mapping.addr()),
                                .size_bytes = mapping.size_bytes(),
                                .file_offset = mapping.file_offset(),
                                .prot = mapping.prot(),
                                .flags = mapping.flags(),
                                .path = mapping.path(),
                                .build_id = ToBytes(mapping.build_id())});
  }
  return scanned;
}

void HostLook::Add(int32_t process) {
  // One that is gone has no user.
  if (const auto user = recorder::FileUserOf("/proc", process)) {
    processes_[user->user].push_back(process);
  }
}

Status HostLook::Run(const Use& use) {
  const auto end = std::chrono::steady_clock::now() + times_.host;
  for (const auto& [user, processes] : processes_) {
    CLEW_RETURN_IF_ERROR(LookAtUser(user, processes, end, use));
  }
  return {};
}

// One of root's that does not answer (a file server that is away) stands for
// itself alone, one of another user's for all of that user.
Status HostLook::LookAtUser(uid_t user, const std::vector<int32_t>& processes,
                            Inspector::Time end, const Use& use) {
  auto user_end =
      std::min(end, std::chrono::steady_clock::now() + times_.host_user);
  bool answers = user == 0 || Inspector::LeftBehind(user) == 0;
  for (const int32_t process : processes) {
    if (user == 0) {
      user_end =
          std::min(end, std::chrono::steady_clock::now() + times_.host_user);
    }
    const auto reply = answers && std::chrono::steady_clock::now() < user_end
                           ? LookAt(user, process, user_end)
                           : LimitReached("there was no time");
    answers = answers && (reply || user == 0);
    if (!reply) {
      ++unanswered_;
      continue;
    }
    CLEW_RETURN_IF_ERROR(use(process, reply->process()));
  }
  return {};
}

Result<pb::InspectReply> HostLook::LookAt(uid_t user, int32_t process,
                                          Inspector::Time end) {
  if (Inspector::IsLeftBehind(process)) {
    return LimitReached("an earlier look at it did not end");
  }
  if (inspector_ == nullptr) {
    CLEW_ASSIGN_OR_RETURN(started, Inspector::Start(user));
    inspector_ = std::move(started);
  }
  inspector_->SetUser(user);
  CLEW_RETURN_IF_ERROR(inspector_->BeginLook(process, hold_));
  auto reply = inspector_->Receive(end);
  if (inspector_->is_over()) {
    inspector_.reset();
  }
  return reply;
}

}  // namespace clew::daemon
