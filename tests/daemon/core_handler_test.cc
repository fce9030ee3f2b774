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
#include "daemon/control.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using testing::Process;
using testing::ReadText;
using testing::Scratch;
using testing::WriteText;

// Random bytes with blocks of zeros between them, the last one short.
std::string MakeCore(size_t bytes) {
  std::string core(bytes, '\0');
  Random random(7);
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = (at >> 16) % 2 == 0 ? random.Next() : 0;
    std::memcpy(core.data() + at, &word, sizeof(word));
  }
  return core;
}

// clewd as far as the handler sees it.
class Daemon final : public ControlHandler {
 public:
  enum class Mood { kGives, kRefuses, kClosesFile };
  Daemon(const std::string& root, Mood mood, uint64_t bytes_max = 1 << 30)
      : file_(root + "/spooled"),
        mood_(mood),
        bytes_max_(bytes_max),
        server_(ControlServer::Open(*loop_, *this,
                                    {.path = root + "/run/clew/clewd.sock",
                                     .group = "clew",
                                     .patience_ms = 5000})) {
    CLEW_CHECK(server_.has_value(), "{}", server_.error().message);
    thread_ = std::thread([this] { (void)loop_->Run(); });
  }
  ~Daemon() override {
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
      answer.line =
          fmt::format("{{\"ok\":true,\"bytes_max\":{}}}\n", bytes_max_);
      answer.descriptor = Fd(open(file_.c_str(), flags | O_CREAT, 0600));
      answer.hold = true;
    } else if (const auto* end = std::get_if<CoreDoneRequest>(&request)) {
      done = *end;
    }
    return answer;
  }
  void OnClosed(ConnectionId) override {}

  CoreRequest asked;
  CoreDoneRequest done;

 private:
  std::string file_;
  Mood mood_;
  uint64_t bytes_max_;
  std::unique_ptr<Loop> loop_ = *Loop::Make(SystemClock());
  Result<std::unique_ptr<ControlServer>> server_;
  std::thread thread_;
};

// Never asked: its loop does not run.
class SilentHandler final : public ControlHandler {
 public:
  Answer OnRequest(ConnectionId, const Peer&, const Request&) override {
    return {};
  }
  void OnClosed(ConnectionId) override {}
};

class CoreHandlerTest : public ::testing::Test {
 protected:
  static constexpr const char* kNoLimit = "18446744073709551615";

  void SetUp() override {
    if (getenv("CLEW_BINARY_DIR") == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    WriteText(At("core"), core_);
    // The handler from before: notes its arguments, keeps what it gets.
    WriteText(At("before"), "#!/bin/sh\necho \"$@\" > " + At("arguments") +
                                "\ncat > " + At("passed") + "\nexit 3\n");
    chmod(At("before").c_str(), 0700);
    SetPattern("|" + At("before") + " %P %s %e 100%% %E%");
  }
  std::string At(const std::string& name) const { return scratch_.Path(name); }
  void SetPattern(const std::string& pattern) const {
    WriteText(At("var/lib/clew/core_pattern.before"), pattern + "\n");
  }
  // As the kernel starts it; returns the exit status.
  int Run(const std::string& limit = kNoLimit,
          const std::string& comm = "a \"b\"", pid_t process = getpid()) {
    const Fd input(open(At("core").c_str(), O_RDONLY));
    const std::string pid = std::to_string(process);
    Process handler(
        {testing::Program("clew-core-handler"), "--root", scratch_.root(), pid,
         pid, pid, pid, std::to_string(getuid()), std::to_string(getgid()), "1",
         "11", "1700000000", limit, "host", comm},
        At("output"), {}, input.get());
    return WEXITSTATUS(handler.Wait());
  }
  int64_t BytesOnDisk(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat(At(name).c_str(), &info), 0);
    return info.st_blocks * 512;
  }

  Scratch scratch_;
  const std::string core_ = MakeCore((3 << 20) + 1001);
};

TEST_F(CoreHandlerTest, BothGetEveryByteOf100Megabytes) {
  const std::string core = MakeCore(100'000'000);
  WriteText(At("core"), core);
  Daemon daemon(scratch_.root(), Daemon::Mood::kGives);
  EXPECT_EQ(Run(), 3) << "the exit status of the handler from before";
  EXPECT_TRUE(ReadText(At("passed")) == core);
  EXPECT_TRUE(ReadText(At("spooled")) == core);
  EXPECT_LT(BytesOnDisk("spooled"), 60'000'000) << "half of it is zeros";
  EXPECT_TRUE(daemon.done.whole);
  EXPECT_EQ(daemon.done.bytes, core.size());
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
  Daemon daemon(scratch_.root(), Daemon::Mood::kGives);
  Run("0", "comm", process.pid());
  EXPECT_TRUE(ReadText(At("spooled")) == core_);
  EXPECT_TRUE(daemon.done.whole);
  EXPECT_TRUE(std::filesystem::is_empty(At("cores")));
}

TEST_F(CoreHandlerTest, AProcessThatWantsNoCoreDumpHasNoneInTheSpool) {
  const LimitedProcess process({0, 0});
  Daemon daemon(scratch_.root(), Daemon::Mood::kGives);
  EXPECT_EQ(Run("0", "comm", process.pid()), 3);
  EXPECT_TRUE(ReadText(At("passed")) == core_)
      << "a pipe gets it all the same, as from the kernel";
  EXPECT_EQ(daemon.asked, CoreRequest());
  EXPECT_FALSE(std::filesystem::exists(At("spooled")));
}

TEST_F(CoreHandlerTest, WhenClewdRefusesTheCoreGoesOn) {
  Daemon daemon(scratch_.root(), Daemon::Mood::kRefuses);
  EXPECT_EQ(Run(), 3);
  EXPECT_TRUE(ReadText(At("passed")) == core_);
  EXPECT_EQ(daemon.done, CoreDoneRequest()) << "there was no copy";
}

TEST_F(CoreHandlerTest, AHungClewdCostsTwoSeconds) {
  // Listens, and never answers.
  std::filesystem::create_directories(At("run/clew"));
  SilentHandler silent;
  const auto begin = std::chrono::steady_clock::now();
  auto loop = *Loop::Make(SystemClock());
  const auto server =
      ControlServer::Open(*loop, silent, {.path = At("run/clew/clewd.sock")});
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(Run(), 3);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(ReadText(At("passed")) == core_);
  EXPECT_LT(took, std::chrono::seconds(5));
}

TEST_F(CoreHandlerTest, ASpoolThatFailsOrIsTooSmallCutsItsOwnCopyAlone) {
  for (const bool small : {true, false}) {
    Daemon daemon(scratch_.root(),
                  small ? Daemon::Mood::kGives : Daemon::Mood::kClosesFile,
                  small ? 1 << 20 : 1 << 30);
    EXPECT_EQ(Run(), 3);
    EXPECT_TRUE(ReadText(At("passed")) == core_);
    EXPECT_FALSE(daemon.done.whole);
  }
}

TEST_F(CoreHandlerTest, AHandlerFromBeforeThatDiesDoesNotStopOurCopy) {
  SetPattern("|/bin/true");
  Daemon daemon(scratch_.root(), Daemon::Mood::kGives);
  EXPECT_EQ(Run(), 0);
  EXPECT_TRUE(ReadText(At("spooled")) == core_);
  EXPECT_TRUE(daemon.done.whole);
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
    Daemon daemon(scratch_.root(), Daemon::Mood::kGives, 1'000'000);
    Run();
    EXPECT_EQ(daemon.done.whole, whole) << size;
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
