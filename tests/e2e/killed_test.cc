// Goal: a recorder of inputs by eBPF that is killed (SIGKILL) at whatever
// moment leaves a whole bundle or none, and the next one has the name; what it
// was attached to goes on, or ends, but is never left stopped; what it launched
// is gone. Method: the built program, killed some time after its folder shows
// how far it has come. The verdict is the same wherever in its work that is.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/os/child_process.h"
#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/os/process_state.h"
#include "common/result.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/wait_until.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kAnswerLimitMs = 600'000;

bool HasChildEnded(pid_t child) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(child), &info,
                WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

// A program that answers while it lives, and that the recorder may have taken
// along.
class MortalProgram {
 public:
  MortalProgram() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    ours_ = Fd(ends[0]);
    const Fd its(ends[1]);
    const Fd errors(open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto pid = SpawnProgram(
        {Tracee("endless"), "plain"},
        {.input = its.get(), .output = its.get(), .errors = errors.get()});
    pid_ = pid.value();
    EXPECT_TRUE(Answers());  // it runs, with all of its threads
  }
  MortalProgram(const MortalProgram&) = delete;
  MortalProgram& operator=(const MortalProgram&) = delete;
  ~MortalProgram() {
    kill(pid_, SIGKILL);
    (void)WaitForChild(pid_);
  }

  std::string Number() const { return std::to_string(pid_); }
  bool HasEnded() const { return HasChildEnded(pid_); }
  bool Answers() const {
    if (send(ours_.get(), "p\n", 2, MSG_NOSIGNAL) != 2) {
      return false;
    }
    pollfd answer = {.fd = ours_.get(), .events = POLLIN, .revents = 0};
    std::array<char, 8> bytes = {};
    return poll(&answer, 1, kAnswerLimitMs) == 1 &&
           read(ours_.get(), bytes.data(), bytes.size()) == 5;
  }
  // Whether one of its threads is traced or stopped.
  bool IsHeld() const {
    std::error_code gone;
    for (const auto& task :
         fs::directory_iterator("/proc/" + Number() + "/task", gone)) {
      const std::string folder = task.path().string();
      const char state = ProcessState(folder + "/stat");
      const std::string traces = TracesIn(folder);
      if (state == 't' || state == 'T' ||
          (!traces.empty() && !traces.starts_with("TracerPid:\t0\n"))) {
        return true;
      }
    }
    return false;
  }
  // What a recorder may leave behind in its first thread.
  std::string Traces() const { return TracesIn("/proc/" + Number()); }

 private:
  pid_t pid_ = 0;
  Fd ours_;
};

// `clew record`, until it is killed.
class MortalRecorder {
 public:
  MortalRecorder(const std::string& bundle, std::vector<std::string> how,
                 const std::vector<std::string>& what, int output)
      : bundle_(bundle) {
    how.insert(how.begin(), {Binary(), "record", "--inputs", "-o", bundle});
    how.insert(how.end(), what.begin(), what.end());
    const auto pid =
        SpawnProgram(how, {.input = -1, .output = output, .errors = output});
    pid_ = pid.value();
  }
  MortalRecorder(const MortalRecorder&) = delete;
  MortalRecorder& operator=(const MortalRecorder&) = delete;
  ~MortalRecorder() { Kill(); }

  // Until its folder has `file`, or it is past that. Returns false if it ended
  // without a bundle.
  [[nodiscard]] bool Await(const std::string& file) const {
    const std::string path = bundle_ + ".partial/" + file;
    const auto end = std::chrono::steady_clock::now() + test::kNeverInATest;
    while (!Exists(path) && !Exists(bundle_) && !HasChildEnded(pid_) &&
           std::chrono::steady_clock::now() < end) {
      // Some of what it does takes less than a millisecond.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return Exists(path) || Exists(bundle_);
  }
  void Interrupt() const { kill(pid_, SIGINT); }
  // Returns once it is gone, and holds nothing any more.
  void Kill() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      (void)WaitForChild(std::exchange(pid_, 0));
    }
  }

 private:
  const std::string bundle_;
  pid_t pid_ = 0;
};

// When the recorder is killed.
struct Moment {
  explicit Moment(uint64_t seed) {
    // In the order in which they appear. "": the folder itself; the last one
    // never does, so that the recorder comes as far as it may.
    constexpr std::array kFiles = {"",          "inputs.pb",   "start.pb",
                                   "perf.data", "manifest.pb", "published"};
    constexpr size_t kFirstBehindTheRun = 3;
    constexpr double kMicrosecondsMax = 300'000;
    std::mt19937 random(static_cast<uint32_t>(seed));
    file = kFiles[seed % kFiles.size()];
    is_behind_the_run = seed % kFiles.size() >= kFirstBehindTheRun;
    // Some phases take a thousandth of others.
    const double share = std::generate_canonical<double, 32>(random);
    later = std::chrono::microseconds(
        static_cast<int64_t>(std::pow(kMicrosecondsMax, share)));
    fmt::print("seed {}: {} us after {}\n", seed, later.count(),
               *file == 0 ? "the folder" : file);
    std::fflush(stdout);
  }

  const char* file;
  bool is_behind_the_run;  // what was attached to had been let go
  std::chrono::microseconds later;
};

// Which one is not told by the moment.
void ExpectWholeOrNone(const std::string& bundle) {
  const std::string partial = bundle + ".partial";
  const ProgramOutput info = Clew({"info", bundle});
  if (Exists(bundle)) {
    fmt::print("whole\n");
    EXPECT_FALSE(Exists(partial));
    EXPECT_EQ(info.exit_status, kExitOk) << info.text;
    const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
    return;
  }
  fmt::print("none{}\n", Exists(partial) ? ", a partial one" : "");
  EXPECT_EQ(info.exit_status, kExitUsage) << info.text;
  if (Exists(partial)) {
    const ProgramOutput refused = Clew({"info", partial});
    EXPECT_EQ(refused.exit_status, kExitUsage) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("not finished"));
  }
  const ProgramOutput next =
      Clew({"record", "--source", "step", "--inputs", "-o", bundle, "--",
            Tracee("static_strings")});
  EXPECT_EQ(next.exit_status, kExitOk) << next.text;
  EXPECT_FALSE(Exists(partial));
}

class KilledRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string kWhyNot = WhyNoBpf();
    if (!kWhyNot.empty()) {
      GTEST_SKIP() << kWhyNot;
    }
  }

  const Scratch scratch_;
  const std::string bundle_ = scratch_.Path("b.clew");
  const Fd nowhere_ = Fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
};

class KilledAnywhereTest : public KilledRecorderTest,
                           public testing::WithParamInterface<uint64_t> {};

// Where it had begun to step, the process mostly ends by SIGTRAP
// (docs/design/native.md).
TEST_P(KilledAnywhereTest, LeavesWhatItWasAttachedToNotStopped) {
  const Moment moment(GetParam());
  const MortalProgram program;
  const std::string before = program.Traces();
  MortalRecorder recorder(bundle_, {"--source", "step"},
                          {"--pid", program.Number()}, nowhere_.get());
  if (moment.is_behind_the_run) {
    ASSERT_TRUE(recorder.Await("start.pb"));
    recorder.Interrupt();
  }
  ASSERT_TRUE(recorder.Await(moment.file));
  std::this_thread::sleep_for(moment.later);
  recorder.Kill();

  EXPECT_TRUE(test::WaitUntil([&] { return !program.IsHeld(); }));
  if (moment.is_behind_the_run) {
    EXPECT_TRUE(program.Answers());
    EXPECT_EQ(program.Traces(), before);
  } else {
    EXPECT_FALSE(Exists(bundle_));  // nobody had told it to end
    EXPECT_TRUE(program.Answers() ||
                test::WaitUntil([&] { return program.HasEnded(); }));
    fmt::print("the process {}\n",
               program.HasEnded() ? "has ended" : "goes on");
  }
  ExpectWholeOrNone(bundle_);
}

TEST_P(KilledAnywhereTest, LeavesNothingOfWhatItLaunched) {
  const Moment moment(GetParam());
  auto output = MakePipe();
  ASSERT_TRUE(output.has_value()) << output.error().message;
  MortalRecorder recorder(bundle_, {"--source", "step"},
                          {"--", Tracee("races/lost_update")},
                          output->write_end.get());
  output->write_end.Close();
  ASSERT_TRUE(recorder.Await(moment.file));
  std::this_thread::sleep_for(moment.later);
  recorder.Kill();

  // The program has the pipe, too: it ends when both are gone.
  std::array<char, 4096> piece = {};
  ssize_t got = 1;
  while (got > 0) {
    pollfd input = {
        .fd = output->read_end.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&input, 1, kAnswerLimitMs), 1) << "the program is there";
    got = read(output->read_end.get(), piece.data(), piece.size());
  }
  ExpectWholeOrNone(bundle_);
}

// While the program is stepped.
INSTANTIATE_TEST_SUITE_P(Moments, KilledAnywhereTest,
                         testing::Values(uint64_t{2}));

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, KilledAnywhereTest,
                         testing::Range<uint64_t>(0, 30));

// Beside hardware nobody steps the process: it is unharmed once the start state
// is there and it was let go.
TEST_F(KilledRecorderTest, LeavesAProcessUnharmedThatRanAtFullSpeed) {
  const MortalProgram program;
  const std::string before = program.Traces();
  MortalRecorder recorder(bundle_, {"--source", "perf", "--sideband-only"},
                          {"--pid", program.Number()}, nowhere_.get());
  if (!recorder.Await("start.pb")) {
    GTEST_SKIP() << "perf is refused here";
  }
  EXPECT_TRUE(test::WaitUntil([&] { return !program.IsHeld(); }));
  recorder.Kill();
  EXPECT_TRUE(program.Answers());
  EXPECT_EQ(program.Traces(), before);
  EXPECT_FALSE(Exists(bundle_));
  ExpectWholeOrNone(bundle_);
}

}  // namespace
}  // namespace clew::e2e
