#ifndef CLEW_DAEMON_SOURCE_HOST_LOOK_H_
#define CLEW_DAEMON_SOURCE_HOST_LOOK_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/result.h"
#include "daemon/source/inspector.h"
#include "recorder/images/process_scan.h"

namespace clew::daemon {

// A reply of `clewd inspect` as recorder has it.
recorder::ScannedProcess Scanned(int32_t process, const pb::LookedAt& looked);

// A look at many processes, which takes LookTimes::host and no more than a part
// of it for those of one user but root, whatever they do: what is left then is
// not looked at, and counted. Users come in ascending order, root first.
// Processes of a user of whom an earlier look was left behind are not looked
// at.
class HostLook {
 public:
  // `hold`: the files, for images.
  HostLook(bool hold, const LookTimes& times) : hold_(hold), times_(times) {}
  void Add(int32_t process);
  // Calls `use` with what runs. An error is that of `use`.
  [[nodiscard]] Status Run(
      const std::function<Status(int32_t, const pb::LookedAt&)>& use);
  uint64_t unanswered() const { return unanswered_; }
  // It holds files of those that it looked at; nullptr: it did not answer.
  std::unique_ptr<Inspector> TakeInspector() { return std::move(inspector_); }

 private:
  using Use = std::function<Status(int32_t, const pb::LookedAt&)>;
  Status LookAtUser(uid_t user, const std::vector<int32_t>& processes,
                    Inspector::Time end, const Use& use);
  Result<pb::InspectReply> LookAt(uid_t user, int32_t process,
                                  Inspector::Time end);

  bool hold_;
  LookTimes times_;
  std::map<uid_t, std::vector<int32_t>> processes_;
  std::unique_ptr<Inspector> inspector_;
  uint64_t unanswered_ = 0;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_HOST_LOOK_H_
