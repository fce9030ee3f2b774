#ifndef CLEW_TESTS_DAEMON_CORE_HANDLER_CORE_HANDLER_FIXTURE_H_
#define CLEW_TESTS_DAEMON_CORE_HANDLER_CORE_HANDLER_FIXTURE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/check.h"
#include "common/digest.h"
#include "daemon/control/control.h"
#include "tests/daemon/support.h"

namespace clew::daemon {

// Random bytes with blocks of zeros between them, the last one short.
inline std::string MakeCore(size_t bytes) {
  std::string core(bytes, '\0');
  Random random(7);
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = (at >> 16) % 2 == 0 ? random.Next() : 0;
    std::memcpy(core.data() + at, &word, sizeof(word));
  }
  return core;
}

// clewd as far as the handler sees it.
class DaemonDouble final : public ControlHandler {
 public:
  enum class Mood { kGives, kRefuses, kClosesFile };
  DaemonDouble(const std::string& root, Mood mood, uint64_t bytes_max = 1 << 30)
      : file_(root + "/spooled"),
        mood_(mood),
        bytes_max_(bytes_max),
        server_(ControlServer::Open(*loop_, *this,
                                    {.path = root + "/run/clew/clewd.sock",
                                     .group = "clew",
                                     .patience_ms = test::kHangMs})) {
    CLEW_CHECK(server_.has_value(), "{}", server_.error().message);
    thread_ = std::thread([this] { (void)loop_->Run(); });
  }
  ~DaemonDouble() override {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }
  Answer OnRequest(ConnectionId, const Peer&, const Request& request) override {
    Answer answer{.line = OkReply(), .descriptor = {}, .hold = false};
    if (const auto* core = std::get_if<CoreRequest>(&request)) {
      asked = *core;
      if (mood_ == Mood::kRefuses) {
        answer.line = ErrorReply({ErrorCode::kLimit, "not now"});
        return answer;
      }
      const int flags = mood_ == Mood::kGives ? O_RDWR : O_RDONLY;
      answer.line = OkReply("bytes_max", bytes_max_);
      answer.descriptor = Fd(open(file_.c_str(), flags | O_CREAT, 0600));
      answer.hold = true;
    } else if (const auto* end = std::get_if<CoreDoneRequest>(&request)) {
      const std::lock_guard lock(mutex_);
      done_ = *end;
      told_.notify_all();
    }
    return answer;
  }
  void OnClosed(ConnectionId) override {}

  CoreRequest asked;
  // What the handler said at its end, which may come after it is gone.
  CoreDoneRequest Done() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(told_.wait_for(lock, std::chrono::milliseconds(test::kHangMs),
                               [this] { return done_.has_value(); }))
        << "it said nothing";
    return done_.value_or(CoreDoneRequest());
  }
  bool WasTold() {
    const std::lock_guard lock(mutex_);
    return done_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<CoreDoneRequest> done_;
  std::string file_;
  Mood mood_;
  uint64_t bytes_max_;
  std::unique_ptr<Loop> loop_ = *Loop::Make(SystemClock());
  Result<std::unique_ptr<ControlServer>> server_;
  std::thread thread_;
};

class CoreHandlerTest : public testing::Test {
 protected:
  static constexpr const char* kNoLimit = "18446744073709551615";

  void SetUp() override {
    if (getenv("CLEW_BINARY_DIR") == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    test::WriteText(At("core"), core_);
    // The handler from before: notes its arguments, keeps what it gets.
    test::WriteText(At("before"), "#!/bin/sh\necho \"$@\" > " +
                                      At("arguments") + "\ncat > " +
                                      At("passed") + "\nexit 3\n");
    chmod(At("before").c_str(), 0700);
    SetPattern("|" + At("before") + " %P %s %e 100%% %E%");
  }
  std::string At(const std::string& name) const { return scratch_.Path(name); }
  void SetPattern(const std::string& pattern) const {
    test::WriteText(At("var/lib/clew/core_pattern.before"), pattern + "\n");
  }
  // As the kernel starts it; returns the exit status.
  int Run(const std::string& limit = kNoLimit,
          const std::string& comm = "a \"b\"", pid_t process = getpid()) {
    return RunOn(Fd(open(At("core").c_str(), O_RDONLY)), limit, comm, process);
  }
  int RunOn(Fd input, const std::string& limit, const std::string& comm,
            pid_t process) {
    const std::string pid = std::to_string(process);
    std::vector<std::string> words = {test::Program("clew-core-handler"),
                                      "--root", scratch_.root()};
    words.insert(words.end(), options_.begin(), options_.end());
    words.insert(words.end(), {pid, pid, pid, pid, std::to_string(getuid()),
                               std::to_string(getgid()), "1", "11",
                               "1700000000", limit, "host", comm});
    test::Process handler(words, At("output"), {}, input.get());
    input.Close();  // the handler's is the only one
    return WEXITSTATUS(handler.Wait());
  }
  int64_t BytesOnDisk(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat(At(name).c_str(), &info), 0);
    return info.st_blocks * 512;
  }

  test::Scratch scratch_;
  // A slow machine has a copy, too.
  std::vector<std::string> options_ = {"--patience", "3600"};
  const std::string core_ = MakeCore((3 << 20) + 1001);
};

}  // namespace clew::daemon

#endif  // CLEW_TESTS_DAEMON_CORE_HANDLER_CORE_HANDLER_FIXTURE_H_
