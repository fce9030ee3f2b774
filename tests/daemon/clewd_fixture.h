#ifndef CLEW_TESTS_DAEMON_CLEWD_FIXTURE_H_
#define CLEW_TESTS_DAEMON_CLEWD_FIXTURE_H_

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/os/fd.h"
#include "daemon/control/control.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/support.h"

namespace clew::daemon::test {

using nlohmann::json;

// The built clewd below a folder of its own, with a clew that is a script.
class ClewdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (getenv("CLEW_BINARY_DIR") == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    // A clew that takes its time and notes what it was asked for; it fails to
    // send while there is a file "down". Checking, it notes in the bundle which
    // files of others it could use, and as whom.
    WriteText(At("clew"),
              "#!/bin/sh\nif [ $1 = check ]; then\n"
              "  echo \"check ${PWD##*/}\" > asked\n"
              "  read line < " +
                  At("secret") + " && echo read >> asked\n  echo x >> " +
                  At("shared") + " && echo wrote >> asked\n" +
                  "  exec id -u > user\nfi\n"
                  "echo \"$1 ${4##*/}\" >> " +
                  At("asked") + "\nsleep 0.02\n" + "[ ! -e " + At("down") +
                  " ] || exit 3\nexit 0\n");
    chmod(At("clew").c_str(), 0755);
    WriteText(At("secret"), "secret\n");
    WriteText(At("shared"), "");
    chmod(At("secret").c_str(), 0644);
    chmod(At("shared").c_str(), 0666);
    // Whoever parses bundles gets at the program.
    chmod(scratch_.root().c_str(), 0711);
    Configure(
        "upload = yes\nupload_retry = 1s\nrate_failure = 1000\n"
        "rate_all = 1000\n");
  }
  std::string At(const std::string& name) const { return scratch_.Path(name); }
  std::string Spool(const std::string& name) const {
    return At("var/lib/clew/spool/" + name);
  }
  void Configure(const std::string& text) const {
    WriteText(At("etc/clew/clewd.conf"),
              "clew = " + At("clew") + "\nredaction = " + At("rules") +
                  "\ndisk_free_bytes = 0\nreport_period = 0\n" + text);
    WriteText(At("rules"), "# the core dumps here are none\n");
  }
  // Without waiting for anything.
  void Launch(const std::vector<std::string>& environment = {}) {
    std::vector<std::string> words = {Program("clewd"), "--root",
                                      scratch_.root()};
    words.insert(words.end(), options_.begin(), options_.end());
    clewd_ = std::make_unique<Process>(words, At("log"), environment);
  }
  void Start() {
    Launch();
    ASSERT_TRUE(WaitUntil([&] { return Reply(StatusRequest()).has_value(); }))
        << ReadText(At("log"));
  }
  // By SIGKILL, and so that the next one can have the spool.
  void Kill() {
    clewd_->Kill();
    EXPECT_TRUE(BecomesFree(Spool("lock")));
  }
  Result<std::string> Reply(const Request& request) const {
    return Ask(At("run/clew/clewd.sock"), request, kHangMs);
  }
  json Status() const {
    const auto reply = Reply(StatusRequest());
    CLEW_CHECK(reply.has_value(), "{}", reply.error().message);
    return json::parse(*reply);
  }
  // The status once nothing is being saved: a save ends, and is counted, a
  // moment after its bundle can be seen.
  json StatusAtRest() const {
    json status;
    EXPECT_TRUE(WaitUntil([&] {
      status = Status();
      return status["state"] != "saving";
    })) << status;
    return status;
  }
  Scratch scratch_;
  std::vector<std::string> options_;
  std::unique_ptr<Process> clewd_;
};

// One that records the sideband; skipped where the kernel does not let it. Its
// looks at processes and its handlers have time without end: what they find is
// expected of a slow machine, too.
class SidebandTest : public ClewdTest {
 protected:
  void SetUp() override {
    ClewdTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Configure(
        "source = sideband\nsideband_only = yes\nmerge = 0\n"
        "rate_failure = 1000\nrate_all = 1000\nspool_bytes = 16G\n");
    options_ = {"--own-look", "3600"};
    Start();
    if (Status()["state"] == "off") {
      GTEST_SKIP() << Status()["source"]["error"];
    }
  }
  // Feeds the handler a core dump of `process`, as the kernel would.
  void DumpCore(pid_t process, const std::string& core, int signal,
                const std::string& comm = "victim") {
    // A file of its own: handlers may still read another one.
    const std::string path = At(fmt::format("core.{}", ++cores_));
    WriteText(path, core);
    const Fd input(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Handler(process, signal, input.get(), comm).Wait();
    std::filesystem::remove(path);
  }
  // As the kernel starts it, with the core dump in `input`.
  Process Handler(pid_t process, int signal, int input,
                  const std::string& comm = "victim") {
    const std::string id = std::to_string(process);
    return Process(
        {Program("clew-core-handler"), "--root", scratch_.root(), "--patience",
         "3600", id, id, id, id, "0", "0", "1", std::to_string(signal),
         "1700000000", "18446744073709551615", "host", comm},
        At("handler"), {}, input);
  }
  // It is /bin/sleep and waits: exec and the loader are behind it.
  static bool IsSleep(pid_t process) {
    const std::string folder = fmt::format("/proc/{}/", process);
    return ReadText(folder + "cmdline").starts_with("/bin/sleep") &&
           ReadText(folder + "stat").find(") S ") != std::string::npos;
  }
  pb::Manifest OnlyReady() {
    EXPECT_TRUE(WaitUntil([&] { return NamesIn(Spool("ready")).size() == 1; }))
        << ReadText(At("log"));
    folder_ = Spool("ready/" + NamesIn(Spool("ready")).at(0));
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(ReadText(folder_ + "/manifest.pb")));
    return manifest;
  }
  std::string folder_;
  int cores_ = 0;
};

}  // namespace clew::daemon::test

#endif  // CLEW_TESTS_DAEMON_CLEWD_FIXTURE_H_
