// Goal: what handled core dumps before gets every byte, unchanged, whatever
// clewd does, and a file such as the kernel would make; the copy for clewd is
// the same, with holes for zeros.
// Method: the built handler, fed as the kernel feeds it; clewd's side is a
// socket of the test's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "daemon/control/control.h"
#include "tests/daemon/core_handler/core_handler_fixture.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::ReadText;
using test::WriteText;

// Never asked: its loop does not run.
class SilentHandler final : public ControlHandler {
 public:
  Answer OnRequest(ConnectionId, const Peer&, const Request&) override {
    return {};
  }
  void OnClosed(ConnectionId) override {}
};

TEST_F(CoreHandlerTest, BothGetEveryByteOf100Megabytes) {
  const std::string core = MakeCore(100'000'000);
  WriteText(At("core"), core);
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Run(), 3) << "the exit status of the handler from before";
  EXPECT_TRUE(ReadText(At("passed")) == core);
  EXPECT_TRUE(ReadText(At("spooled")) == core);
  EXPECT_LT(BytesOnDisk("spooled"), 60'000'000) << "half of it is zeros";
  EXPECT_TRUE(daemon.Done().whole);
  EXPECT_EQ(daemon.Done().bytes, core.size());
  EXPECT_EQ(daemon.asked.process, getpid());
  EXPECT_EQ(daemon.asked.signal, 11);
  EXPECT_EQ(daemon.asked.comm, "a ?b?");
}

TEST_F(CoreHandlerTest, TheHandlerFromBeforeGetsItsArguments) {
  EXPECT_EQ(Run(), 3);
  std::array<char, 4096> path = {};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  std::string program = path.data();
  std::ranges::replace(program, '/', '!');
  EXPECT_EQ(ReadText(At("arguments")),
            fmt::format("{} 11 a \"b\" 100% {}\n", getpid(), program));
}

TEST_F(CoreHandlerTest, WithoutClewdTheCoreGoesOn) {
  EXPECT_EQ(Run(), 3);
  EXPECT_TRUE(ReadText(At("passed")) == core_);
}

// A process with the limits of core dumps that waits to be killed.
class LimitedProcess {
 public:
  explicit LimitedProcess(rlimit limit) : pid_(fork()) {
    if (pid_ == 0) {
      setrlimit(RLIMIT_CORE, &limit);
      (void)!write(ready_.at(1), "", 1);
      pause();
      _exit(0);
    }
    char byte = 0;
    EXPECT_EQ(read(ready_.at(0), &byte, 1), 1);
  }
  ~LimitedProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ready_[0]);
    close(ready_[1]);
  }
  pid_t pid() const { return pid_; }

 private:
  static std::array<int, 2> Pipe() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe(ends.data()), 0);
    return ends;
  }
  std::array<int, 2> ready_ = Pipe();  // before the fork
  pid_t pid_;
};

TEST_F(CoreHandlerTest, ASoftLimitOfZeroKeepsCoreFilesAwayAndNotClewd) {
  rlimit own = {};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &own), 0);
  if (own.rlim_max == 0) {
    GTEST_SKIP() << "the hard limit of core dumps is 0 here";
  }
  const LimitedProcess process({0, own.rlim_max});
  SetPattern(At("cores/%p"));
  std::filesystem::create_directories(At("cores"));
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  Run("0", "comm", process.pid());
  EXPECT_TRUE(ReadText(At("spooled")) == core_);
  EXPECT_TRUE(daemon.Done().whole);
  EXPECT_TRUE(std::filesystem::is_empty(At("cores")));
}

TEST_F(CoreHandlerTest, AProcessThatWantsNoCoreDumpHasNoneInTheSpool) {
  const LimitedProcess process({0, 0});
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Run("0", "comm", process.pid()), 3);
  EXPECT_TRUE(ReadText(At("passed")) == core_)
      << "a pipe gets it all the same, as from the kernel";
  EXPECT_EQ(daemon.asked, CoreRequest());
  EXPECT_FALSE(std::filesystem::exists(At("spooled")));
}

TEST_F(CoreHandlerTest, WhenClewdRefusesTheCoreGoesOn) {
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kRefuses);
  EXPECT_EQ(Run(), 3);
  EXPECT_TRUE(ReadText(At("passed")) == core_);
  EXPECT_FALSE(daemon.WasTold()) << "there was no copy";
}

// As on a host: two seconds, which are printed and not judged. Whoever waited
// for the answer would wait for ever.
TEST_F(CoreHandlerTest, AHungClewdIsNotWaitedFor) {
  options_ = {};
  // Listens, and never answers.
  std::filesystem::create_directories(At("run/clew"));
  SilentHandler silent;
  const auto begin = std::chrono::steady_clock::now();
  auto loop = *Loop::Make(SystemClock());
  const auto server =
      ControlServer::Open(*loop, silent, {.path = At("run/clew/clewd.sock")});
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(Run(), 3);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  EXPECT_TRUE(ReadText(At("passed")) == core_);
  fmt::print("beside a clewd that hangs the handler took {} ms\n",
             took.count());
}

TEST_F(CoreHandlerTest, ASpoolThatFailsOrIsTooSmallCutsItsOwnCopyAlone) {
  for (const bool small : {true, false}) {
    DaemonDouble daemon(
        scratch_.root(),
        small ? DaemonDouble::Mood::kGives : DaemonDouble::Mood::kClosesFile,
        small ? 1 << 20 : 1 << 30);
    EXPECT_EQ(Run(), 3);
    EXPECT_TRUE(ReadText(At("passed")) == core_);
    EXPECT_FALSE(daemon.Done().whole);
  }
}

TEST_F(CoreHandlerTest, AHandlerFromBeforeThatDiesDoesNotStopOurCopy) {
  SetPattern("|/bin/true");
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(ReadText(At("spooled")) == core_);
  EXPECT_TRUE(daemon.Done().whole);
}

TEST_F(CoreHandlerTest, AFilePatternMakesTheFile) {
  SetPattern(At("cores/%e.%p.%s"));
  std::filesystem::create_directories(At("cores"));
  EXPECT_EQ(Run(), 0);
  const std::string name =
      At("cores/") + fmt::format("a \"b\".{}.11", getpid());
  EXPECT_TRUE(ReadText(name) == core_);
  // RLIMIT_CORE cuts it, and 0 means none.
  EXPECT_EQ(Run("5000"), 0);
  EXPECT_TRUE(ReadText(name) == core_.substr(0, 5000));
  std::filesystem::remove(name);
  EXPECT_EQ(Run("0"), 1);
  EXPECT_FALSE(std::filesystem::exists(name));
  // A link in its place is not followed.
  WriteText(At("victim"), "safe");
  std::filesystem::create_symlink(At("victim"), name);
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(ReadText(At("victim")), "safe");
}

// As fs/coredump.c: what the process never touched takes no room, in the file
// and of RLIMIT_CORE.
TEST_F(CoreHandlerTest, AFileHasHolesForZeros) {
  constexpr size_t kSize = 100'000'000;
  std::string core(kSize, '\0');
  core[0] = core[50'000'000] = 'x';
  WriteText(At("core"), core);
  SetPattern(At("core.here"));
  EXPECT_EQ(Run("10000"), 0);
  EXPECT_TRUE(ReadText(At("core.here")) == core);
  EXPECT_LT(BytesOnDisk("core.here"), 100'000);
}

TEST_F(CoreHandlerTest, TheLimitOfTheSpoolsCopyIsOfItsDiskAndLessOfItsHoles) {
  for (const auto& [size, whole] :
       {std::pair(1'400'000, true), {1'600'000, false}}) {
    std::string core(static_cast<size_t>(size), '\0');
    core.back() = 'x';
    WriteText(At("core"), core);
    std::filesystem::remove(At("spooled"));
    DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives, 1'000'000);
    Run();
    EXPECT_EQ(daemon.Done().whole, whole) << size;
    EXPECT_LT(BytesOnDisk("spooled"), 100'000);
  }
}

TEST_F(CoreHandlerTest, AProgramsNameLeadsIntoNoOtherFolder) {
  std::filesystem::create_directories(At("cores/here"));
  SetPattern(At("cores/here/%e/core"));
  EXPECT_EQ(Run(kNoLimit, ".."), 1) << "there is no folder \"!.\"";
  EXPECT_FALSE(std::filesystem::exists(At("cores/core")));
  SetPattern(At("cores/here/%e"));
  for (const auto& [comm, name] :
       {std::pair("..", "!."), {".", "!"}, {"", "!"}, {"a/b", "a!b"}}) {
    EXPECT_EQ(Run(kNoLimit, comm), 0);
    EXPECT_TRUE(std::filesystem::exists(At("cores/here/") + name)) << name;
    std::filesystem::remove(At("cores/here/") + name);
  }
}

TEST_F(CoreHandlerTest, AFileThatOthersMayReadIsNotOverwritten) {
  WriteText(At("core.here"), "mine");
  SetPattern(At("core.here"));
  chmod(At("core.here").c_str(), 0644);
  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(ReadText(At("core.here")), "mine");
  chmod(At("core.here").c_str(), 0600);
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(ReadText(At("core.here")) == core_);
}

// A container's path is one in the container.
TEST_F(CoreHandlerTest, APathIsOneOfTheProcessesRoot) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, for chroot";
  }
  std::filesystem::create_directories(At("jail/cores"));
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t jailed = fork();
  if (jailed == 0) {
    const bool entered =
        chroot(At("jail").c_str()) == 0 && chdir("/cores") == 0;
    char byte = entered ? 1 : 0;
    (void)!write(ends[1], &byte, 1);
    pause();
    _exit(0);
  }
  char entered = 0;
  ASSERT_EQ(read(ends[0], &entered, 1), 1);
  ASSERT_EQ(entered, 1);
  for (const std::string pattern : {"/cores/absolute", "relative"}) {
    SetPattern(pattern);
    EXPECT_EQ(Run(kNoLimit, "comm", jailed), 0);
  }
  kill(jailed, SIGKILL);
  waitpid(jailed, nullptr, 0);
  for (const int end : ends) {
    close(end);
  }
  EXPECT_TRUE(ReadText(At("jail/cores/absolute")) == core_);
  EXPECT_TRUE(ReadText(At("jail/cores/relative")) == core_);
}

}  // namespace
}  // namespace clew::daemon
