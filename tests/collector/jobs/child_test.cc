// Goal: a child that was taken over can neither outlive its limits, nor leave
// anything behind, nor reach what is not its own; and what ended it is told.
// Method: child_probe.c tries each.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "collector/jobs/confined_child.h"
#include "common/check.h"
#include "common/os/confinement.h"
#include "common/os/fd.h"
#include "common/os/process_state.h"
#include "common/os/syscall_filter.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using clew::test::kNeverInATest;
using clew::test::WaitUntil;
using testing::AnyOf;
using testing::HasSubstr;

// As many as this process may have: those of its user count, whoever started
// them.
uint64_t ProcessesMax() {
  rlimit own{};
  CLEW_CHECK(getrlimit(RLIMIT_NPROC, &own) == 0, "no limit of processes");
  return own.rlim_max;
}

// Children have low priority: on a busy machine a second of the processor may
// take them half a minute. So no limit of time ends them unless a test says so.
ConfinedChildRequest Probe(const TempFolder& folder,
                           std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CLEW_CHILD_PROBE);
  return {.arguments = std::move(arguments),
          .folder = folder.path(),
          .limits = {.wall_s = kNeverInATest.count(),
                     .cpu_s = kNeverInATest.count(),
                     .processes = ProcessesMax()}};
}

ConfinedChildOutcome RunIt(const ConfinedChildRequest& request) {
  const auto outcome = RunConfinedChild(request);
  CLEW_CHECK(outcome.has_value(), "{}", outcome.error().message);
  return *outcome;
}

void ExpectLimit(const ConfinedChildRequest& request,
                 const std::string& limit) {
  const ConfinedChildOutcome outcome = RunIt(request);
  EXPECT_EQ(outcome.end, ConfinedChildEnd::kLimit) << outcome.last_error;
  EXPECT_EQ(outcome.limit, limit);
}

// Not a zombie, which its new parent need not have fetched yet.
bool IsAlive(pid_t pid) {
  const char state = ProcessState(fmt::format("/proc/{}/stat", pid));
  return state != 0 && state != 'Z' && state != 'X';
}

// Killed is not yet gone.
bool Dies(pid_t pid) {
  return WaitUntil([&] { return !IsAlive(pid); });
}

// What a probe that hangs tells before; 0: nothing yet.
pid_t ToldPid(const TempFolder& folder) {
  pid_t pid = 0;
  std::ifstream(folder / "pid") >> pid;
  return pid;
}

TEST(ChildTest, TellsOutputStatusAndTheLastComplaint) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {});
  request.arguments = {"/bin/sh", "-c",
                       "printf hello; echo one >&2; echo two >&2; exit 3"};
  const ConfinedChildOutcome outcome = RunIt(request);
  EXPECT_EQ(outcome.end, ConfinedChildEnd::kExited);
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_EQ(outcome.output, "hello");
  EXPECT_EQ(outcome.last_error, "two");
}

TEST(ChildTest, AProgramThatCannotBeStartedIsAFailureOfTheSystem) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {});
  request.arguments = {"/nonexistent/clew"};
  const auto outcome = RunConfinedChild(request);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kSystem);
  EXPECT_THAT(outcome.error().message,
              HasSubstr("cannot start /nonexistent/clew (exec): No such file"));
  request = Probe(folder, {});
  request.folder = "/nonexistent";
  const auto nowhere = RunConfinedChild(request);
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("(current folder)"));
}

TEST(ChildTest, FindsNothingOfTheCollector) {
  const TempFolder folder;
  ASSERT_EQ(setenv("CLEW_TEST_SECRET", "42", 1), 0);
  const int fd = open("/dev/null", O_RDONLY);  // and not to be closed by exec
  ASSERT_GE(fd, 3);
  EXPECT_EQ(RunIt(Probe(folder, {"descriptors"})).output, "0 1 2 stdin 0");
  close(fd);
  ConfinedChildRequest request = Probe(folder, {});
  request.arguments = {"/usr/bin/env"};
  EXPECT_EQ(
      RunIt(request).output,
      "PATH=/usr/bin:/bin\nLC_ALL=C.UTF-8\nTMPDIR=" + folder.path() + "\n");
  EXPECT_EQ(unsetenv("CLEW_TEST_SECRET"), 0);
}

TEST(ChildTest, EveryLimitEndsItAndIsNamed) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {"hang"});
  request.limits.wall_s = 0.2;
  ExpectLimit(request, "wall-clock limit of 0.2 s");

  request = Probe(folder, {"cpu"});
  request.limits.cpu_s = 1;
  ExpectLimit(request, "CPU time limit of 1 s");

  request = Probe(folder, {"memory"});
  request.limits.memory_bytes = 32 << 20;
  ExpectLimit(request, "memory limit of 33554432 bytes");

  request = Probe(folder, {"flood"});
  request.limits.output_bytes = 100'000;
  ExpectLimit(request, "output limit of 100000 bytes");
  EXPECT_EQ(RunIt(request).output.size(), 100'000u);

  request = Probe(folder, {"file"});
  request.limits.file_bytes = 100'000;
  ExpectLimit(request, "limit of 100000 bytes for a file");
  EXPECT_EQ(fs::file_size(folder / "big"), 100'000u);
}

// The collector may have more memory than a child may, and the kernel counts
// it as the child's peak.
TEST(ChildTest, AFailureIsNotOfMemoryBecauseTheCollectorIsLarge) {
  const TempFolder folder;
  const std::vector<char> large(48 << 20, 'x');
  ConfinedChildRequest request = Probe(folder, {"complain"});
  request.limits.memory_bytes = 32 << 20;
  const ConfinedChildOutcome outcome = RunIt(request);
  EXPECT_EQ(outcome.end, ConfinedChildEnd::kExited) << outcome.limit;
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_EQ(large.back(), 'x');
}

TEST(ChildTest, OfAFloodOfComplaintsTheLastIsKept) {
  const TempFolder folder;
  const ConfinedChildOutcome outcome = RunIt(Probe(folder, {"complain"}));
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_EQ(outcome.last_error, "complaint 9999");
}

TEST(ChildTest, ACrashIsASignalAndLeavesNoCore) {
  const TempFolder folder;
  const ConfinedChildOutcome outcome = RunIt(Probe(folder, {"crash"}));
  EXPECT_EQ(outcome.end, ConfinedChildEnd::kSignal);
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// How many there were.
int ExpectAllDead(const std::string& numbers) {
  std::istringstream lines(numbers);
  int count = 0;
  for (pid_t pid = 0; lines >> pid; ++count) {
    EXPECT_TRUE(Dies(pid)) << pid;
  }
  return count;
}

// Whether it ends by itself or is ended; that again with more and more time,
// until all that it starts have been there.
TEST(ChildTest, NothingItStartedIsLeftBehind) {
  constexpr int kLeft = 12;  // as the probe says
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {"leave"});
  request.may_fork = true;
  const ConfinedChildOutcome ended = RunIt(request);
  EXPECT_EQ(ended.end, ConfinedChildEnd::kExited);
  EXPECT_EQ(ExpectAllDead(ended.output), kLeft);

  request = Probe(folder, {"leave and hang"});
  request.may_fork = true;
  int left = 0;
  for (request.limits.wall_s = 1; left < kLeft; request.limits.wall_s *= 2) {
    ASSERT_LT(request.limits.wall_s, kNeverInATest.count()) << left;
    const ConfinedChildOutcome killed = RunIt(request);
    ASSERT_EQ(killed.end, ConfinedChildEnd::kLimit);
    left = ExpectAllDead(killed.output);
  }
  EXPECT_EQ(left, kLeft);
}

TEST(ChildTest, StopsWhenTold) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {"hang"});
  request.stop_fd = eventfd(0, EFD_CLOEXEC);
  std::thread stopper([&] {
    EXPECT_TRUE(WaitUntil([&] { return ToldPid(folder) > 0; }));
    EXPECT_EQ(eventfd_write(request.stop_fd, 1), 0);
  });
  const ConfinedChildOutcome outcome = RunIt(request);
  stopper.join();
  close(request.stop_fd);
  EXPECT_EQ(outcome.end, ConfinedChildEnd::kStopped);
}

// The process that runs it is killed, and cannot do anything about it.
TEST(ChildTest, DiesWithTheCollector) {
  const TempFolder folder;
  const pid_t collector = fork();
  ASSERT_GE(collector, 0);
  if (collector == 0) {
    (void)RunConfinedChild(Probe(folder, {"hang"}));
    _exit(0);
  }
  EXPECT_TRUE(WaitUntil([&] { return ToldPid(folder) > 0; }));
  const pid_t child = ToldPid(folder);
  const bool lives = child > 0 && IsAlive(child);
  kill(collector, SIGKILL);
  waitpid(collector, nullptr, 0);
  ASSERT_TRUE(lives);
  EXPECT_TRUE(Dies(child));
}

bool FilesAreLimited() {
  const TempFolder folder;
  const auto made = Confinement::Make(
      {.program = CLEW_CHILD_PROBE, .folder = folder.path(), .readable = {}});
  CLEW_CHECK(made.has_value(), "{}", made.error().message);
  return made->limits_files();
}

TEST(ChildTest, ReachesNothingButItsOwn) {
  const TempFolder folder;
  const TempFolder other;
  WriteFiles(other.path(), {{"token", "secret"}});
  const std::string output =
      RunIt(Probe(folder, {"try", other / "token"})).output;
  for (const char* what :
       {"socket", "ptrace", "setsid", "unshare", "clone newuser", "io_uring",
        "limit parent", "fork"}) {
    EXPECT_THAT(output,
                HasSubstr(fmt::format("{}: Operation not permitted\n", what)));
  }
  for (const char* what :
       {"limit self", "thread", "write below", "rename below"}) {
    EXPECT_THAT(output, HasSubstr(fmt::format("{}: done\n", what)));
  }
  if (!FilesAreLimited()) {
    GTEST_SKIP() << "no Landlock: files of others are not tried";
  }
  EXPECT_THAT(output, HasSubstr("\nread: Permission denied\n"));
  EXPECT_THAT(output, HasSubstr("\nwrite: Permission denied\n"));
}

// Files by name are Landlock's; the rest is refused in any case.
const char* AttackMode() {
  return FilesAreLimited() ? "attack" : "attack calls";
}

// Each of them a line "what: result" of the probe.
void ExpectAllRefused(const std::string& output, size_t count_min) {
  std::istringstream lines(output);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, AnyOf(HasSubstr(": Operation not permitted"),
                            HasSubstr(": Permission denied"),
                            HasSubstr(": Function not implemented")));
  }
  EXPECT_GE(count, count_min) << output;
}

TEST(ChildTest, ChangesNothingOfOthers) {
  const TempFolder folder;
  const TempFolder other;
  WriteFiles(other.path(), {{"victim", "content"}});
  for (const bool may_fork : {false, true}) {
    ConfinedChildRequest request =
        Probe(folder, {AttackMode(), other / "victim"});
    request.may_fork = may_fork;
    const ConfinedChildOutcome outcome = RunIt(request);
    EXPECT_EQ(outcome.end, ConfinedChildEnd::kExited) << outcome.signal;
    ExpectAllRefused(outcome.output, 70);
    EXPECT_EQ(fs::file_size(other / "victim"), 7u);
  }
}

// What `mode` prints under the filter alone, as on a kernel without Landlock.
std::string RunFilteredOnly(const TempFolder& folder, const char* mode,
                            const std::string& victim, int* status) {
  const std::string said = folder / "said";
  const pid_t child = fork();
  CLEW_CHECK(child >= 0, "no process");
  if (child == 0) {
    const int fd = open(said.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (EnterSyscallFilter({.fork = true}) == 0) {
      execl(CLEW_CHILD_PROBE, CLEW_CHILD_PROBE, mode, victim.c_str(), nullptr);
    }
    _exit(99);
  }
  waitpid(child, status, 0);
  std::ifstream file(said);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ChildTest, WithoutLandlockTheFilterAloneKeepsSignalsAndChangesIn) {
  const TempFolder folder;
  WriteFiles(folder.path(), {{"victim", "content"}});
  int status = 0;
  ExpectAllRefused(
      RunFilteredOnly(folder, "attack calls", folder / "victim", &status), 50);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(folder / "victim"), 7u);
}

TEST(ChildTest, HasNoCapabilityWhoeverStartsIt) {
  const TempFolder folder;
  EXPECT_EQ(RunIt(Probe(folder, {"capabilities"})).output, "0 0\n");
}

TEST(ChildTest, MayEndItselfBySignal) {
  const TempFolder folder;
  for (const char* mode : {"abort", "abort in thread", "abort in process"}) {
    ConfinedChildRequest request = Probe(folder, {mode});
    request.may_fork = true;
    const ConfinedChildOutcome outcome = RunIt(request);
    EXPECT_EQ(outcome.end, ConfinedChildEnd::kSignal) << mode;
    EXPECT_EQ(outcome.signal, SIGABRT) << mode;
  }
}

// Without the filter.
bool KernelHasIpv6() {
  const Fd fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.is_open();
}

TEST(ChildTest, ConnectsWhereItMayAndNeverListens) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {"network"});
  request.may_connect = true;
  constexpr const char* kNoSuch = "Address family not supported by protocol";
  EXPECT_EQ(
      RunIt(request).output,
      fmt::format(
          "ipv4: done\nipv6: {1}\nunix: {0}\nnetlink: {0}\n"
          "bind: Operation not permitted\nlisten: Operation not permitted\n",
          kNoSuch, KernelHasIpv6() ? "done" : kNoSuch));
  // All else is as without the network.
  const TempFolder other;
  WriteFiles(other.path(), {{"token", "secret"}});
  ConfinedChildRequest attempt = Probe(folder, {"try", other / "token"});
  attempt.may_connect = true;
  const std::string output = RunIt(attempt).output;
  for (const char* what : {"ptrace", "kill parent", "io_uring", "fork"}) {
    EXPECT_THAT(output,
                HasSubstr(fmt::format("{}: Operation not permitted\n", what)));
  }
  if (FilesAreLimited()) {
    EXPECT_THAT(output, HasSubstr("\nread: Permission denied\n"));
    attempt.readable = {other.path()};
    EXPECT_THAT(RunIt(attempt).output, HasSubstr("\nread: done\n"));
  }
}

TEST(ChildTest, MayForkWhereItMay) {
  const TempFolder folder;
  ConfinedChildRequest request = Probe(folder, {"try"});
  request.may_fork = true;
  const std::string output = RunIt(request).output;
  EXPECT_THAT(output, HasSubstr("fork: done\n"));
  EXPECT_THAT(output, HasSubstr("setsid: Operation not permitted\n"));
  EXPECT_THAT(output, HasSubstr("clone newuser: Operation not permitted\n"));
  EXPECT_THAT(output, HasSubstr("thread: done\n"));
}

// Many at once, from many threads, each gets its own answer.
TEST(ChildTest, RunsInSeveralThreads) {
  const TempFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        ConfinedChildRequest request = Probe(folder, {});
        const std::string text = fmt::format("{} {}", t, i);
        request.arguments = {"/bin/echo", text};
        const auto outcome = RunConfinedChild(request);
        ASSERT_TRUE(outcome) << outcome.error().message;
        EXPECT_EQ(outcome->output, text + "\n");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace clew::collector
