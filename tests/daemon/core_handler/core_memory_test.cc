// Goal: a core dump that is made from the process's memory is, byte for byte,
// the one that the kernel sends; and where it cannot be made so, it comes from
// the pipe, whole.
// Method: a process with every kind of mapping, stopped, whose twin has died
// (twin.c). The built handler gets the twin's core file through a pipe, page by
// page, as the kernel writes it, and has the stopped process's number. Oracle:
// the kernel's core file. How much was taken from the pipe tells where the
// memory came from.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "tests/daemon/core_handler/core_handler_fixture.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;
using test::ReadText;
using test::WriteText;

constexpr size_t kPageBytes = 4096;
constexpr size_t kFewBytes = 1 << 20;  // the head, and what a pipe holds

// Writes it into the pipe as far as somebody reads, and counts.
class Feeder {
 public:
  Feeder(const std::string& dump, size_t bytes) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    output_ = Fd(ends[0]);
    thread_ = std::thread([this, &dump, bytes, to = ends[1]] {
      const Fd input(to);
      while (fed_ < bytes) {
        const size_t part = std::min(kPageBytes, bytes - fed_);
        const ssize_t count = write(input.get(), dump.data() + fed_, part);
        if (count < 0) {
          return;
        }
        fed_ += static_cast<size_t>(count);
        if (on_page) {
          on_page(fed_);
        }
      }
    });
  }
  Fd TakeOutput() { return std::move(output_); }
  size_t Join() {
    thread_.join();
    return fed_;
  }
  std::function<void(size_t)> on_page;

 private:
  Fd output_;
  size_t fed_ = 0;
  std::thread thread_;
};

class CoreMemoryTest : public CoreHandlerTest {
 protected:
  void SetUp() override {
    CoreHandlerTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, as the kernel starts the handler";
    }
    signal(SIGPIPE, SIG_IGN);
    fs::create_directories(At("twin"));
    WriteText(At("twin/file"), std::string(10 * kPageBytes + 33, 'F'));
    StartTwin();
    for (const auto& entry : fs::directory_iterator(At("twin"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("core")) {
        dump_ = ReadText(entry.path().string());
      }
    }
    if (dump_.empty()) {
      GTEST_SKIP() << "the kernel writes no core files into a process's "
                      "working directory here (kernel.core_pattern)";
    }
    SetPattern(At("cores/%e"));
    fs::create_directories(At("cores"));
  }
  // Until nothing is left of it but its number: a zombie has no memory.
  void KillTwin() const {
    kill(twin_, SIGKILL);
    siginfo_t info = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(twin_), &info, WEXITED | WNOWAIT),
              0);
  }
  void TearDown() override {
    if (twin_ > 0) {
      kill(twin_, SIGKILL);
      waitpid(twin_, nullptr, 0);
    }
  }
  // Returns what was taken from the pipe.
  size_t Handle(pid_t process, size_t bytes) {
    Feeder feeder(dump_, bytes);
    status_ = RunOn(feeder.TakeOutput(), kNoLimit, "made", process);
    return feeder.Join();
  }
  size_t Handle() { return Handle(twin_, dump_.size()); }
  bool IsMade() const { return ReadText(At("cores/made")) == dump_; }
  // Where the first difference is; for people.
  std::string Difference(const std::string& name) const {
    const std::string made = ReadText(At(name));
    const auto [at, other] = std::ranges::mismatch(made, dump_);
    return fmt::format("{} of {} bytes, the first other one at {:#x}",
                       made.size(), dump_.size(), at - made.begin());
  }

  pid_t twin_ = -1;
  std::string dump_;
  int status_ = -1;

 private:
  void StartTwin() {
    twin_ = fork();
    if (twin_ == 0) {
      // The kernel writes into an rseq area whenever it likes.
      setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
      if (chdir(At("twin").c_str()) == 0) {
        execl(CLEW_DAEMON_TWIN, CLEW_DAEMON_TWIN, "file", nullptr);
      }
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(twin_, &status, WUNTRACED), twin_);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
  }
};

TEST_F(CoreMemoryTest, AFileIsTheKernelsByteForByte) {
  EXPECT_LT(Handle(), kFewBytes) << "the memory went through the pipe";
  EXPECT_EQ(status_, 0);
  EXPECT_TRUE(IsMade()) << Difference("cores/made");
  EXPECT_LT(BytesOnDisk("cores/made"), dump_.size() / 3);
}

TEST_F(CoreMemoryTest, TheSpoolsCopyIsTheSameBesideAFileAndAlone) {
  for (const bool beside : {true, false}) {
    SetPattern(beside ? At("cores/%e") : "");
    fs::remove(At("spooled"));
    DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
    EXPECT_LT(Handle(), kFewBytes);
    EXPECT_TRUE(ReadText(At("spooled")) == dump_) << Difference("spooled");
    EXPECT_TRUE(daemon.Done().whole);
    EXPECT_EQ(daemon.Done().bytes, dump_.size());
  }
}

TEST_F(CoreMemoryTest, AProgramFromBeforeGetsThePipeAndTheSpoolTheMemory) {
  SetPattern("|" + At("before"));
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Handle(), dump_.size());
  EXPECT_EQ(status_, 3) << "the exit status of the program";
  EXPECT_TRUE(ReadText(At("passed")) == dump_) << Difference("passed");
  EXPECT_TRUE(ReadText(At("spooled")) == dump_) << Difference("spooled");
  EXPECT_TRUE(daemon.Done().whole);
}

TEST_F(CoreMemoryTest, OfAProcessThatDoesNotWriteThePipeCounts) {
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Handle(getpid(), dump_.size()), dump_.size());
  EXPECT_TRUE(IsMade()) << Difference("cores/made");
  EXPECT_TRUE(ReadText(At("spooled")) == dump_) << Difference("spooled");
  EXPECT_TRUE(daemon.Done().whole);
}

TEST_F(CoreMemoryTest, OfAProcessThatIsGoneThePipeCounts) {
  KillTwin();
  DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
  EXPECT_EQ(Handle(), dump_.size());
  EXPECT_TRUE(ReadText(At("spooled")) == dump_) << Difference("spooled");
  EXPECT_TRUE(daemon.Done().whole);
}

// The kernel goes away in the midst of a dump if somebody kills the process.
TEST_F(CoreMemoryTest, ADumpThatEndsEarlyIsNotCalledWhole) {
  KillTwin();
  for (const size_t bytes :
       {size_t{64}, size_t{5000}, kPageBytes * 100, dump_.size() / 2}) {
    fs::remove(At("spooled"));
    DaemonDouble daemon(scratch_.root(), DaemonDouble::Mood::kGives);
    EXPECT_EQ(Handle(twin_, bytes), bytes);
    EXPECT_TRUE(ReadText(At("spooled")) == dump_.substr(0, bytes));
    EXPECT_FALSE(daemon.Done().whole) << bytes;
  }
}

// Heads that no kernel writes: what is in the pipe is passed on, whatever it
// is.
TEST_F(CoreMemoryTest, HeadsThatMakeNoSenseChangeNothing) {
  Random random(11);
  const std::string good = dump_.substr(0, 4 << 20);
  for (int i = 0; i < 15; ++i) {
    dump_ = good;
    const size_t header = i % 2 == 0 ? random.Below(sizeof(Elf64_Ehdr))
                                     : random.Below(40 * sizeof(Elf64_Phdr));
    dump_[header] = static_cast<char>(random.Next());
    const size_t fed = Handle();
    const bool from_pipe = fed == dump_.size();
    // A head may be other and still true of the process, as its registers are.
    EXPECT_TRUE(!from_pipe || IsMade())
        << "byte " << header << ": " << Difference("cores/made");
    fs::remove(At("cores/made"));
  }
}

}  // namespace
}  // namespace clew::daemon
