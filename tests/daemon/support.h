#ifndef CLEW_TESTS_DAEMON_SUPPORT_H_
#define CLEW_TESTS_DAEMON_SUPPORT_H_

#include <sys/types.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/loop/clock.h"
#include "daemon/loop/loop.h"
#include "daemon/pipeline/pipeline.h"
#include "tests/support/read_text.h"
#include "tests/support/wait_until.h"

namespace clew::daemon::test {

using clew::test::ReadText;
using clew::test::WaitUntil;

// As it, for limits of the program.
inline constexpr uint64_t kHangMs =
    std::chrono::milliseconds(clew::test::kWaitMax).count();

// A clock that stands still but for Advance.
class FakeClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return ns_; }
  int64_t WallNs() override { return 1'700'000'000'000'000'000 + int64_t(ns_); }
  void Advance(uint64_t ms) { ns_ += ms * 1'000'000; }

 private:
  uint64_t ns_ = 1'000'000'000;
};

// A new folder, removed afterwards.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& root() const { return root_; }
  std::string Path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

void WriteText(const std::string& path, const std::string& text);
std::vector<std::string> NamesIn(const std::string& folder);

// REQUIRES: `path` fits into an address (107 bytes).
sockaddr_un SocketAddress(const std::string& path);

// Somebody listens at `path`: a socket that is bound is seen before that.
bool Accepts(const std::string& path);

// A bundle as far as the daemon looks at it: manifest.pb and a core of
// `core_bytes`.
void MakeBundle(const std::string& folder, int signal, size_t core_bytes = 10);

// Work that ends when the test says so.
class FakeWork final : public BundleJob {
 public:
  Status Start(const std::string& folder,
               std::function<void(const JobEnd&)> done) override;
  // REQUIRES: running().
  void End(const JobEnd& end = {});
  bool running() const { return done_ != nullptr; }
  const std::string& folder() const { return folder_; }
  int starts = 0;
  bool fails = false;  // to start

 private:
  std::string folder_;
  std::function<void(const JobEnd&)> done_;
};

// Runs the loop until `done` is true; false after `limit_ms` of real time.
bool RunUntil(Loop& loop, const std::function<bool()>& done,
              uint64_t limit_ms = kHangMs);

// A child process of the test: standard error and output in a file.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::string& output,
          const std::vector<std::string>& environment = {}, int input = -1);
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Does nothing once its end was waited for.
  void Signal(int signal) const;
  // The wait status; REQUIRES: not called before.
  int Wait();
  // Waits for its end; false if there is none.
  bool Ends();
  // Ends it by SIGKILL.
  void Kill();
  // Until it has stopped; SIGCONT lets it go on.
  void Stop() const;
  bool IsRunning();
  pid_t id() const { return process_; }

 private:
  pid_t process_ = -1;
  int status_ = -1;
};

// build/bin/<name>.
std::string Program(const std::string& name);

// Until nobody has locked the file. A process that was killed may have children
// that were about to become other programs; they hold its locks a moment
// longer.
bool BecomesFree(const std::string& lock);

}  // namespace clew::daemon::test

#endif  // CLEW_TESTS_DAEMON_SUPPORT_H_
