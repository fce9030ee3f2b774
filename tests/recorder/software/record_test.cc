// Goal: a run becomes a bundle that tells how it ended, whatever way that is;
// the same seed gives the same PT; whoever dies, half a bundle is never left.
// Method: small programs recorded for real under qemu-x86_64; the core dump is
// opened by gdb.
#include "recorder/software/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "common/os/file.h"
#include "proto/bundle.pb.h"
#include "recorder/software/until_fail.h"
#include "tests/support/thread_state.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string BinaryFolder() {
  const char* folder = getenv("CLEW_BINARY_DIR");
  return folder == nullptr ? "." : folder;
}

std::string Tracee(const std::string& name) {
  return BinaryFolder() + "/tests/recorder/programs/recorder_tracee_" + name;
}

class RecordTest : public testing::TestWithParam<SoftwareSource> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clew-record-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  RecordOptions Options(std::vector<std::string> command) {
    RecordOptions options;
    options.command = std::move(command);
    options.source = GetParam();
    options.output = folder_ + "/b.clew";
    options.plugin_path = BinaryFolder() + "/bin/clew-qemu-plugin.so";
    return options;
  }
  Failure FailureOf(const std::string& how) {
    const auto outcome = Record(Options({Tracee("endings"), how}));
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    return outcome.has_value() ? outcome->failure : Failure();
  }
  // Makes an executable file in folder_.
  void WriteExecutable(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }
  // Its exit status says whether all was as it should.
  void ExpectToEndWell(const std::vector<std::string>& command) {
    RecordOptions options = Options(command);
    options.timeout_s = 60;
    options.keep_only_if_failed = true;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << command[1] << outcome.error().message;
    EXPECT_EQ(outcome->failure.kind, FailureKind::kNone) << command[1];
    EXPECT_EQ(outcome->failure.exit_status, 0) << command[1];
  }
  std::string Gdb(const std::string& command) {
    const std::string line = "gdb -nx -batch -ex '" + command + "' " +
                             Tracee("endings") + " " + folder_ +
                             "/b.clew/core 2>/dev/null";
    FILE* pipe = popen(line.c_str(), "r");
    std::string text;
    std::array<char, 4096> chunk;
    while (const size_t got = fread(chunk.data(), 1, chunk.size(), pipe)) {
      text.append(chunk.data(), got);
    }
    pclose(pipe);
    return text;
  }

  std::string folder_;
};

std::string NameOf(const testing::TestParamInfo<SoftwareSource>& source) {
  switch (source.param) {
    case SoftwareSource::kQemu:
      return "Qemu";
    case SoftwareSource::kStep:  // slow
      break;
    case SoftwareSource::kTracer:
      return "Tracer";
  }
  return {};
}
INSTANTIATE_TEST_SUITE_P(Source, RecordTest,
                         testing::Values(SoftwareSource::kQemu,
                                         SoftwareSource::kTracer),
                         NameOf);

class TracerRecordTest : public RecordTest {};
INSTANTIATE_TEST_SUITE_P(Source, TracerRecordTest,
                         testing::Values(SoftwareSource::kTracer), NameOf);

class QemuRecordTest : public RecordTest {};
INSTANTIATE_TEST_SUITE_P(Source, QemuRecordTest,
                         testing::Values(SoftwareSource::kQemu), NameOf);

TEST_P(RecordTest, ThreadsMakeAWholeBundle) {
  for (const char* program : {"threads", "static"}) {
    RecordOptions options = Options({Tracee(program)});
    options.output += program;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->failure.kind, FailureKind::kNone);
    EXPECT_EQ(outcome->failure.exit_status, 0);
    EXPECT_GT(outcome->insns, 10'000u);
    EXPECT_GT(outcome->handovers, 50u);
    EXPECT_GT(outcome->pt_bytes, 1000u);
    for (const char* file :
         {"manifest.pb", "perf.data", "start.pb", "inputs.pb", "core"}) {
      EXPECT_TRUE(fs::exists(options.output + "/" + file)) << file;
    }
    EXPECT_FALSE(fs::exists(options.output + "/raw"));
    EXPECT_FALSE(fs::exists(options.output + ".partial"));

    std::ifstream in(options.output + "/start.pb", std::ios::binary);
    pb::Start start;
    ASSERT_TRUE(start.ParseFromIstream(&in));
    ASSERT_EQ(start.gpr_size(), 16);
    const auto holds = [&](uint64_t addr) {
      return std::any_of(start.segments().begin(), start.segments().end(),
                         [&](const pb::Segment& s) {
                           return s.addr() <= addr &&
                                  addr < s.addr() + s.size_bytes();
                         });
    };
    EXPECT_TRUE(holds(start.rip()));
    EXPECT_TRUE(holds(start.gpr(4))) << "the stack";
  }
}

TEST_P(RecordTest, TheSameSeedGivesTheSamePt) {
  std::array<std::vector<std::byte>, 3> traces;
  for (size_t i = 0; i < traces.size(); ++i) {
    RecordOptions options = Options({Tracee("threads")});
    options.output += std::to_string(i);
    options.seed = i < 2 ? 5 : 6;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    traces[i] = {std::byte{0}};
    // Sideband carries thread ids, which differ; the PT at the end does not.
    const auto file = ReadWholeFile(options.output + "/perf.data");
    ASSERT_TRUE(file.has_value());
    const size_t tail = std::min<size_t>(file->size(), 4000);
    traces[i].assign(file->end() - static_cast<long>(tail), file->end());
    traces[i].push_back(static_cast<std::byte>(outcome->pt_bytes & 0xff));
  }
  EXPECT_EQ(traces[0], traces[1]);
  EXPECT_NE(traces[0], traces[2]);
}

// What a program with time limits does depends on the seed, not on the host.
TEST_P(RecordTest, TheSameSeedGivesTheSameTimedWaits) {
  std::array<std::string, 4> runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    RecordOptions options = Options({Tracee("waits"), "race"});
    options.output += std::to_string(i);
    options.seed = i < 3 ? 5 : 6;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->failure.exit_status, 0);
    const auto file = ReadWholeFile(options.output + "/perf.data");
    ASSERT_TRUE(file.has_value());
    const std::string bytes(reinterpret_cast<const char*>(file->data()),
                            file->size());
    runs[i] = fmt::format("{} {} {} {}", outcome->insns, outcome->handovers,
                          outcome->pt_bytes, bytes.substr(bytes.size() - 4000));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
  EXPECT_NE(runs[0], runs[3]);
}

// Each of these looks at the clock, and exits with 0 if all was as it should.
TEST_P(RecordTest, WaitsEndByTheClockThatTheProgramIsShown) {
  for (const char* what : {"sleep", "absolute", "limit", "signal", "wake",
                           "join", "constant", "outside"}) {
    ExpectToEndWell({Tracee("waits"), what});
  }
}

TEST_P(TracerRecordTest, AWaitEndsByWhatAnotherProcessOrThreadDoes) {
  for (const char* what : {"stranger", "fifo"}) {
    ExpectToEndWell({Tracee("waits"), what});
  }
}

// Alone, and beside a thread that computes meanwhile.
TEST_P(RecordTest, NoTimerOrTimeLimitIsEarlyByTheProgramsClock) {
  for (const char* kind :
       {"descriptor", "descriptor_until", "descriptor_until_day", "periodic",
        "itimer", "posix", "posix_until", "poll", "ppoll", "select", "pselect",
        "epoll", "semaphore", "signal", "sleep"}) {
    ExpectToEndWell({Tracee("timers"), kind, "6"});
  }
}

TEST_P(RecordTest, AFaultEndsAtTheInstructionThatFaulted) {
  const Failure failure = FailureOf("crash");
  EXPECT_EQ(failure.kind, FailureKind::kSignal);
  EXPECT_EQ(failure.signal, SIGSEGV);
  EXPECT_EQ(failure.addr.as_int(), 0x123450u);
  const std::string place = Gdb("frame");
  EXPECT_THAT(place, HasSubstr("FAULT"));
  EXPECT_THAT(Gdb("print sink"), HasSubstr("= 1"));
  EXPECT_THAT(Gdb("bt"), HasSubstr("main"));
  EXPECT_THAT(Gdb("print $_siginfo.si_code"), HasSubstr("= 1"));  // MAPERR
}

TEST_P(RecordTest, EveryEndingIsRecognised) {
  const std::vector<std::pair<std::string, Failure>> endings = [] {
    std::vector<std::pair<std::string, Failure>> list(4);
    list[0].first = "divide";
    list[0].second.signal = SIGFPE;
    list[1].first = "abort";
    list[1].second.signal = SIGABRT;
    list[2].first = "term";
    list[2].second.signal = SIGTERM;
    list[3].first = "handled";
    list[3].second.exit_status = 7;
    return list;
  }();
  for (const auto& [how, expected] : endings) {
    const Failure failure = FailureOf(how);
    EXPECT_EQ(failure.signal, expected.signal) << how;
    EXPECT_EQ(failure.exit_status, expected.exit_status) << how;
    EXPECT_EQ(failure.kind,
              expected.signal != 0 ? FailureKind::kSignal : FailureKind::kNone)
        << how;
    fs::remove_all(folder_ + "/b.clew");
  }
}

TEST_P(RecordTest, TheCoreDumpHasEveryThreadWhetherItRanOrNot) {
  RecordOptions options = Options({Tracee("endings"), "newborn"});
  options.cores = 1;  // so that the second one waits for the core
  const auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  const std::string threads = Gdb("thread apply all backtrace");
  EXPECT_THAT(threads, HasSubstr("Thread 3 "));
  EXPECT_THAT(threads, Not(HasSubstr("Thread 4 ")));
  EXPECT_THAT(Gdb("backtrace"), HasSubstr("main")) << "who ended it is first";
}

// Of the bytes that images/ has as well, the dump has none, and gdb takes them
// from there; what was relocated is in it.
TEST_P(RecordTest, TheCoreDumpLeavesOutWhatTheImagesHave) {
  ASSERT_EQ(FailureOf("abort").signal, SIGABRT);
  uint64_t images = 0;
  for (const auto& file :
       fs::recursive_directory_iterator(folder_ + "/b.clew/images")) {
    images += file.is_regular_file() ? file.file_size() : 0;
  }
  EXPECT_GT(images, 2'000'000u);
  EXPECT_LT(fs::file_size(folder_ + "/b.clew/core"), images / 4);
  EXPECT_THAT(Gdb("backtrace"), HasSubstr("main"));
  const std::string code = Gdb("x/16xb abort");
  EXPECT_THAT(code, HasSubstr("abort>:"));
  EXPECT_THAT(code, Not(HasSubstr("0x00\t0x00\t0x00\t0x00\t0x00\t0x00")));
  EXPECT_THAT(Gdb("x/s *environ"), HasSubstr("="));
}

TEST_P(RecordTest, ADeadlockIsSeenAtOnceAndALongRunAtTheTimeLimit) {
  EXPECT_EQ(FailureOf("deadlock").kind, FailureKind::kHang);
  std::array<uint64_t, 2> insns;
  for (size_t i = 0; i < insns.size(); ++i) {
    RecordOptions options = Options({Tracee("endings"), "spin"});
    options.output += std::to_string(i);
    options.timeout_s = 1;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->failure.kind, FailureKind::kTimeLimit);
    insns[i] = outcome->insns;
  }
  constexpr uint64_t kInsns = 100'000'000;
  EXPECT_GE(insns[0], kInsns) << "10 ns each";
  EXPECT_LT(insns[0], kInsns + 2 * 300 * SchedulerConfig::kGrowthMax)
      << "a turn more";
  EXPECT_EQ(insns[0], insns[1]) << "the host does not matter";
}

TEST_P(RecordTest, AWaitForSomethingOutsideEndsAtTheTimeLimit) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::vector<std::string> command = {Tracee("endings"), "outside"};
  for (const char* how : {"read", "open"}) {
    RecordOptions options = Options(command);
    options.output += how;
    options.timeout_s = 1;
    const auto outcome = Record(options);
    ASSERT_TRUE(outcome.has_value()) << how << outcome.error().message;
    EXPECT_EQ(outcome->failure.kind, FailureKind::kTimeLimit) << how;
    EXPECT_TRUE(fs::exists(options.output + "/core")) << how;
    command.push_back(fifo);
  }
}

// What a host that is too busy to run it looks like to the program, for longer
// than its limit.
TEST_P(RecordTest, TimeInWhichTheHostDoesNotRunItDoesNotCount) {
  const std::string pid_file = folder_ + "/pid";
  RecordOptions options = Options({Tracee("endings"), "stop", pid_file});
  options.timeout_s = 1;
  std::atomic<bool> over = false;
  std::thread waker([&] {
    pid_t process = 0;
    const auto is_stopped = [&] {
      return (process != 0 || std::ifstream(pid_file) >> process) &&
             test::ThreadState(process, process) == 'T';
    };
    while (!is_stopped() && !over) {
      usleep(10'000);
    }
    usleep(2'500'000);
    if (process != 0) {
      kill(process, SIGCONT);
    }
  });
  const auto outcome = Record(options);
  over = true;
  waker.join();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->failure.kind, FailureKind::kNone);
  EXPECT_EQ(outcome->failure.exit_status, 3);
}

TEST_P(RecordTest, ExitStatusCountsAsFailureIfAsked) {
  RecordOptions options = Options({Tracee("endings")});
  options.keep_only_if_failed = true;
  auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_FALSE(outcome->kept);
  EXPECT_FALSE(fs::exists(options.output));
  options.fail_on = *ParseFailOn("exit!=0");
  outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->kept);
  EXPECT_EQ(outcome->failure.kind, FailureKind::kExit);
  EXPECT_EQ(outcome->failure.exit_status, 3);
  EXPECT_TRUE(fs::exists(options.output + "/core"));
}

TEST_P(RecordTest, WhereNoRunFailsItIsToldHowTheyEnded) {
  RecordOptions options = Options({Tracee("endings")});
  options.seed = 5;
  const auto outcome = RecordUntilFail(options, {.tries_max = 2}, nullptr);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().message,
            "none of 2 runs failed: 2 ended with exit status 3; seeds 5 to 6 "
            "were tried; --fail-on says which status counts as a failure");
}

// Whatever the user's umask allows: a bundle has what was in memory.
TEST_P(RecordTest, NobodyElseMayReadWhatWasRecorded) {
  const mode_t before = umask(0);
  const auto outcome = Record(Options({Tracee("endings"), "crash"}));
  umask(before);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  size_t seen = 0;
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(folder_ + "/b.clew").permissions() & kOthers,
            fs::perms::none);
  for (const auto& entry :
       fs::recursive_directory_iterator(folder_ + "/b.clew")) {
    EXPECT_EQ(entry.status().permissions() & kOthers, fs::perms::none)
        << entry.path();
    ++seen;
  }
  EXPECT_GT(seen, 5u);
}

// The file beside it has the name that /proc/PID/maps shows of the first.
TEST_P(RecordTest, APathWithANewlineIsTheProgramsAndNoOther) {
  const std::string program = folder_ + "/new\nline";
  fs::copy_file(Tracee("endings"), program);
  fs::copy_file("/bin/true", folder_ + "/new\\012line");
  const auto outcome = Record(Options({program, "crash"}));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  pb::Manifest manifest;
  std::ifstream file(folder_ + "/b.clew/manifest.pb");
  ASSERT_TRUE(manifest.ParseFromIstream(&file));
  EXPECT_THAT(manifest.images(),
              testing::Contains(testing::Property(&pb::Image::path, program)));
}

TEST_P(RecordTest, AProgramThatClosesItsStderrIsRecordedAllTheSame) {
  const Failure failure = FailureOf("close2");
  EXPECT_EQ(failure.exit_status, 4);
  EXPECT_TRUE(fs::exists(folder_ + "/b.clew/core"));
}

// It closes every number up to its limit, which some hosts have at a billion.
TEST_P(RecordTest, AProgramThatClosesAllDescriptorsIsRecordedAllTheSame) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = std::min<rlim_t>(before.rlim_cur, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limited), 0);
  for (const char* how : {"close_all", "close_range"}) {
    EXPECT_EQ(FailureOf(how).exit_status, 3) << how;
    EXPECT_TRUE(fs::exists(folder_ + "/b.clew/core")) << how;
    fs::remove_all(folder_ + "/b.clew");
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// What deletes the folder is the program itself here.
TEST_P(RecordTest, AFolderThatIsRemovedMeanwhileIsSaidToBe) {
  const std::string partial = folder_ + "/b.clew.partial";
  const auto outcome = Record(Options({Tracee("endings"), "remove", partial}));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_THAT(outcome.error().message,
              HasSubstr("b.clew.partial\" was removed while the program ran"));
}

// Its outcome is told, though it may make no file any more.
TEST_P(QemuRecordTest, AProgramThatGivesUpItsRightsLacksOnlyTheCoreDump) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, whose rights can be given up";
  }
  RecordOptions options = Options({Tracee("endings"), "drop"});
  const auto outcome = Record(options);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_THAT(outcome.error().message, HasSubstr("core\": Permission denied"));
  options.keep_only_if_failed = true;
  const auto no_core = Record(options);
  ASSERT_TRUE(no_core.has_value()) << no_core.error().message;
  EXPECT_EQ(no_core->failure.exit_status, 3);
}

// The kernel would refuse it, and the program go on.
TEST_P(QemuRecordTest, AProgramThatIsReplacedByNoneThatQemuRunsIsRefused) {
  WriteExecutable("elf32", "\177ELF\1\1\1");
  const auto replaced =
      Record(Options({Tracee("endings"), "exec", folder_ + "/elf32"}));
  fs::remove(folder_ + "/elf32");
  ASSERT_FALSE(replaced.has_value());
  EXPECT_EQ(replaced.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(replaced.error().message, HasSubstr("no x86-64 program"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_P(RecordTest, RefusalsNameTheReasonAndLeaveNothing) {
  const auto absent = Record(Options({"/no/such/program"}));
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, ErrorCode::kInvalidArgument);
  WriteExecutable("text", "no program\n");
  WriteExecutable("script", "#!" + folder_ + "/text\n");
  for (const char* name : {"/text", "/script"}) {
    const auto text = Record(Options({folder_ + name}));
    ASSERT_FALSE(text.has_value());
    EXPECT_THAT(text.error().message,
                HasSubstr("/text\" is neither an ELF program nor a script"));
  }
  fs::remove(folder_ + "/text");
  fs::remove(folder_ + "/script");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_P(RecordTest, AScriptIsRunByItsInterpreter) {
  WriteExecutable("script", "#!/bin/sh -e\nfalse || exit $1\n");
  const auto outcome = Record(Options({folder_ + "/script", "3"}));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->failure.exit_status, 3);
}

// Limited, so that this host bears it where the recorder does not refuse.
TEST_P(QemuRecordTest, AReservationThatQemuCouldNotBearIsRefused) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{4} << 30;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const auto outcome = Record(Options({Tracee("endings"), "reserve"}));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(outcome.error().message, HasSubstr("maps 16384.0 GiB at once"));
}

// Threads, and far more trace than is allowed, then a failure.
TEST_P(RecordTest, BeyondItsSizeLimitTheProgramGoesOnAndItsFailureIsKept) {
  RecordOptions options = Options({Tracee("endings"), "beyond"});
  options.size_limit_bytes = 128 << 10;
  const auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->failure.signal, SIGABRT);
  EXPECT_THAT(outcome->dropped, HasSubstr("size limit of 131072 bytes"));
  EXPECT_GT(outcome->insns, 20'000'000u);
  pb::Manifest manifest;
  std::ifstream in(options.output + "/manifest.pb", std::ios::binary);
  ASSERT_TRUE(manifest.ParseFromIstream(&in));
  EXPECT_EQ(manifest.trace_dropped(), outcome->dropped);
  EXPECT_GT(manifest.images_size(), 1) << "program and libraries";
  for (const char* file : {"start.pb", "inputs.pb", "raw"}) {
    EXPECT_FALSE(fs::exists(options.output + "/" + file)) << file;
  }
  EXPECT_LT(fs::file_size(options.output + "/perf.data"), 16u << 10);
  const std::string threads = Gdb("thread apply all backtrace");
  EXPECT_THAT(threads, HasSubstr(" main (argc"));
  EXPECT_THAT(threads, HasSubstr("LoopForEver"));
}

TEST_P(RecordTest, ARunWithinItsSizeLimitIsWhole) {
  RecordOptions options = Options({Tracee("endings"), "abort"});
  options.size_limit_bytes = 64 << 20;
  const auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->dropped, "");
  EXPECT_TRUE(fs::exists(options.output + "/start.pb"));
}

// A core dump of this program is longer than its files may be here.
TEST_P(RecordTest, OnlyARunThatIsKeptWritesACoreDump) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 20u << 20;
  RecordOptions options = Options({Tracee("endings"), "large"});
  for (const bool only_failed : {true, false}) {
    options.keep_only_if_failed = only_failed;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
    const auto outcome = Record(options);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(outcome.has_value(), only_failed);
  }
}

TEST_P(RecordTest, InstructionsThatCannotBeReplayedAreToldWithTheirPlace) {
  const std::vector<std::byte> sldt = {std::byte{0x0f}, std::byte{0x00},
                                       std::byte{0xc0}};
  RecordOptions options = Options({Tracee("endings"), "rare"});
  size_t asked = 0;
  options.can_replay = [&](std::span<const std::byte> bytes) {
    ++asked;
    return !std::ranges::equal(bytes, sldt);
  };
  const auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_GT(asked, 1000u);
  EXPECT_LT(asked, outcome->insns / 2) << "each once";
  ASSERT_EQ(outcome->unknown_insns.size(), 1u);
  EXPECT_EQ(outcome->unknown_insns[0].insn.bytes, sldt);
  EXPECT_THAT(outcome->unknown_insns[0].place,
              HasSubstr("recorder_tracee_endings+0x"));
}

// Puts a script in QEMU's place.
TEST_P(QemuRecordTest, ACrashOfQemuIsNotTakenForTheProgramsOrForAKill) {
  const std::string path = getenv("PATH");
  const std::string qemu = folder_ + "/qemu-x86_64";
  setenv("PATH", (folder_ + ":" + path).c_str(), 1);
  for (const auto& [signal, says] :
       {std::pair{"SEGV", "qemu-x86_64 itself crashed by signal 11 (SIGSEGV)"},
        std::pair{"KILL", "signal 9 (SIGKILL) from outside"}}) {
    std::ofstream(qemu) << "#!/bin/sh\nkill -" << signal << " $$\n";
    fs::permissions(qemu, fs::perms::owner_all);
    RecordOptions options = Options({Tracee("endings")});
    options.plugin_path.clear();  // a shell cannot load it
    const auto outcome = Record(options);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_THAT(outcome.error().message, HasSubstr(says));
  }
  setenv("PATH", path.c_str(), 1);
}

TEST_P(RecordTest, KillNineLeavesNoBundleAndTheNextRecorderTakesOver) {
  RecordOptions options = Options({Tracee("endings"), "spin"});
  const pid_t child = fork();
  if (child == 0) {
    (void)Record(options);
    _exit(0);
  }
  while (!fs::exists(options.output + ".partial/start.pb")) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it ended by itself";
    usleep(10'000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(fs::exists(options.output));
  options.command = {Tracee("endings")};
  const auto outcome = Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_FALSE(fs::exists(options.output + ".partial"));
}

TEST(FailOnTest, PanicsAndReportsCountByDefault) {
  for (int32_t status = 0; status < 256; ++status) {
    EXPECT_EQ(FailOn().Matches(status, false), status == 101 || status == 2);
    EXPECT_EQ(FailOn().Matches(status, true), status != 0);
    constexpr FailOn kOfChildren = {.rule = FailOn::Rule::kReports};
    EXPECT_EQ(kOfChildren.Matches(status, false), status == 101);
    EXPECT_EQ(kOfChildren.Matches(status, true), status != 0);
    EXPECT_FALSE(ParseFailOn("never")->Matches(status, true));
  }
}

TEST(FailOnTest, ATextIsReadAsTheRuleThatItIsOf) {
  for (const char* text : {"never", "panics", "exit!=0", "exit=255"}) {
    EXPECT_EQ(ToString(*ParseFailOn(text)), text);
  }
}

TEST(FailOnTest, RulesAreReadStrictly) {
  EXPECT_TRUE(ParseFailOn("exit!=0")->Matches(1, false));
  EXPECT_FALSE(ParseFailOn("exit!=0")->Matches(0, true));
  EXPECT_TRUE(ParseFailOn("exit=3")->Matches(3, false));
  for (const char* bad :
       {"", "exit", "exit=", "exit!=x", "exit=256", "=1", "Never"}) {
    EXPECT_FALSE(ParseFailOn(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace clew::recorder
