#ifndef CLEW_DAEMON_SOURCE_INSPECTOR_H_
#define CLEW_DAEMON_SOURCE_INSPECTOR_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/os/fd.h"
#include "common/result.h"
#include "proto/inspect.pb.h"
#include "recorder/images/image_source.h"

namespace clew::daemon {

// How long looks at processes may take, and where the time of one is over it is
// left behind.
struct LookTimes {
  // At the process that a bundle is saved for.
  std::chrono::milliseconds own{5'000};
  // At one of its images, until it is copied.
  std::chrono::milliseconds image{20'000};
  // At all other processes of the host.
  std::chrono::milliseconds host{1'000};
  // Of that, at the processes of one user; of root's, at each.
  std::chrono::milliseconds host_user{250};
};

// Looks at processes and at files that they have mapped, in a child (`clewd
// inspect`). Reading what a stranger made may take for ever, and the reader
// cannot even be killed: a file system may never answer, and memory may be such
// a file. So a child does it, and is left behind when it does not answer in
// time.
//
// Children that were killed and that the kernel cannot end (KilledChildren) are
// counted by the user whom they looked at, and one with kLeftBehindMax of them
// (root: kLeftBehindOfRootMax) is not looked at any more until they end. Nobody
// is, while kNotEndedMax that were killed have not ended for whatever reason.
// Nothing here waits longer than it was told. Not thread-safe; may move between
// threads.
class Inspector {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kLeftBehindMax = 2;
  static constexpr size_t kLeftBehindOfRootMax = 8;
  static constexpr size_t kLeftBehindOfAllMax = 16;
  static constexpr size_t kNotEndedMax = 64;

  // Returns how many children that looked at processes of `user` are left
  // behind.
  static size_t LeftBehind(uid_t user);
  // Returns whether one of them looked at this process.
  static bool IsLeftBehind(int32_t looked_at);

  // Starts a child that looks at processes of `user`. Fails with kLimit if too
  // many are left behind, and with kSystem if the child cannot be started.
  [[nodiscard]] static Result<std::unique_ptr<Inspector>> Start(uid_t user);
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // From now on the processes looked at are those of `user`.
  void SetUser(uid_t user) { user_ = user; }

  // Begins a look without waiting; Receive gets the answer.
  [[nodiscard]] Status BeginLook(int32_t process, bool hold);
  // Returns a descriptor that hangs up when the first answer is there, or none
  // will come. To be called once.
  Fd TakeFirstAnswer() { return std::move(first_answer_); }
  // Receive waits for the next answer; Ask sends a request first. Both fail
  // with kLimit if there is no answer by `end`, and then the child is killed
  // and cannot be asked any more; with kSystem if the child has ended.
  [[nodiscard]] Result<pb::InspectReply> Receive(Time end);
  [[nodiscard]] Result<pb::InspectReply> Ask(const pb::InspectRequest& request,
                                             Time end);
  bool is_over() const { return !socket_.is_open(); }

 private:
  explicit Inspector(uid_t user) : user_(user) {}
  Status Spawn();
  Status Send(const pb::InspectRequest& request);
  Status ReceiveBytes(char* out, size_t size, Time end);
  void Abandon();

  uid_t user_;
  pid_t process_ = -1;
  int32_t looked_at_ = 0;  // last
  Fd socket_;
  Fd first_answer_;
};

// Images that an Inspector copies. One that does not answer for `image_time` is
// replaced by a new one, which knows no held files, `replaced_max` times.
class InspectedImages final : public recorder::ImageSource {
 public:
  static constexpr int kReplacedMax = 3;

  // `inspector` may be nullptr.
  InspectedImages(uid_t user, std::unique_ptr<Inspector> inspector,
                  std::chrono::milliseconds image_time,
                  int replaced_max = kReplacedMax)
      : user_(user),
        inspector_(std::move(inspector)),
        image_time_(image_time),
        left_(replaced_max) {}
  Result<uint64_t> SizeOf(const recorder::MappedImage& image) override;
  Result<std::string> CopyTo(const recorder::MappedImage& image,
                             uint64_t bytes_max,
                             const std::string& to) override;

 private:
  Result<pb::InspectReply> Ask(const pb::InspectRequest& request);
  Status Replace();

  uid_t user_;
  std::unique_ptr<Inspector> inspector_;
  std::chrono::milliseconds image_time_;
  int left_;  // replacements
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_INSPECTOR_H_
