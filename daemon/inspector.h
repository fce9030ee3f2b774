#ifndef CLEW_DAEMON_INSPECTOR_H_
#define CLEW_DAEMON_INSPECTOR_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "proto/inspect.pb.h"
#include "recorder/image_source.h"

namespace clew::daemon {

// Looks at processes and at files that they have mapped, in a child
// (`clewd inspect`). Whoever reads what a stranger made may wait for ever, and
// cannot even be killed: a file system that never answers, memory that is such
// a file. So a child does it, and is left behind when it does not answer in
// time.
//
// Children that were killed and do not end are counted by the user whom they
// looked at, and one with kLeftBehindMax of them (root: kLeftBehindOfRootMax)
// is not looked at any more until they end. Nothing here waits longer than it
// was told. Not thread-safe; may move between threads.
class Inspector {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kLeftBehindMax = 2;
  static constexpr size_t kLeftBehindOfRootMax = 8;
  static constexpr size_t kLeftBehindOfAllMax = 16;

  // Children that were killed and did not end, of `user`.
  static size_t LeftBehind(uid_t user);
  // One of them looked at this process.
  static bool IsLeftBehind(int32_t looked_at);

  // For processes of `user`. kLimit: too many are left behind. kSystem.
  [[nodiscard]] static Result<std::unique_ptr<Inspector>> Start(uid_t user);
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  // Whom it looks at from now on.
  void SetUser(uid_t user) { user_ = user; }

  // Begins a look, whose answer is for Receive; without waiting.
  [[nodiscard]] Status BeginLook(int32_t process, bool hold);
  // Hangs up when the first answer is there, or none will come; once.
  Fd TakeFirstAnswer() { return std::move(first_answer_); }
  // kLimit: not until `end`; the child is killed, and this cannot be asked any
  // more. kSystem: it has ended.
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

// Images that an Inspector copies. One that does not answer for kImageTime is
// replaced by a new one, which knows no held files, `replaced_max` times.
class InspectedImages final : public recorder::ImageSource {
 public:
  static constexpr std::chrono::seconds kImageTime{20};
  static constexpr int kReplacedMax = 3;

  // `inspector` may be nullptr.
  InspectedImages(uid_t user, std::unique_ptr<Inspector> inspector,
                  int replaced_max = kReplacedMax)
      : user_(user), inspector_(std::move(inspector)), left_(replaced_max) {}
  Result<uint64_t> SizeOf(const recorder::MappedImage& image) override;
  Result<std::string> CopyTo(const recorder::MappedImage& image,
                             uint64_t bytes_max,
                             const std::string& to) override;

 private:
  Result<pb::InspectReply> Ask(const pb::InspectRequest& request);
  Status Replace();

  uid_t user_;
  std::unique_ptr<Inspector> inspector_;
  int left_;  // replacements
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_INSPECTOR_H_
