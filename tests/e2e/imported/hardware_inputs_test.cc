// Goal: `clew record --source perf --inputs` makes bundles in which every call
// of the program is, as the program saw it; what is not known is counted the
// same by recorder, manifest, log, `info` and `check`; what cannot be recorded
// is refused and leaves nothing behind, and a recorder that dies no bundle.
// Method: the built program on the kernel that runs us, without PT. Oracle: a
// program that writes down what each call returned and did to its memory.
// Skipped, with the reason, where perf or eBPF is refused.
#include <asm/unistd_64.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <variant>

#include "bundle/bundle.h"
#include "common/inputs.h"
#include "common/os/child_process.h"
#include "common/os/file.h"
#include "common/result.h"
#include "recorder/perf_record.h"
#include "tests/e2e/imported/hardware_fixture.h"
#include "tests/recorder/bpf/truth.h"
#include "tests/support/wait_until.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using bundle::Bundle;
using nlohmann::json;
using testing::HasSubstr;
using testing::Matcher;
using testing::Not;

std::string BpfTraceePath() {
  return Built("tests/recorder/bpf/recorder_bpf_tracee");
}

// Records of inputs.pb, by thread.
std::vector<InputRecord> RecordsOf(InputSource& inputs, Tid thread) {
  std::vector<InputRecord> records;
  while (true) {
    auto next = inputs.Next(thread);
    EXPECT_TRUE(next) << next.error().message;
    if (!next || !*next) {
      return records;
    }
    records.push_back(std::move(**next));
  }
}

uint64_t UnknownIn(const std::vector<InputRecord>& records) {
  uint64_t unknown = 0;
  for (const InputRecord& record : records) {
    const auto* gap = std::get_if<UnknownInput>(&record);
    unknown += gap != nullptr ? gap->count : 0;
  }
  return unknown;
}

// One call as the program wrote it down.
struct TrueCall {
  TruthCall call = {};
  std::span<const std::byte> before;  // its arena
  std::span<const std::byte> after;
};

std::vector<TrueCall> TruthIn(std::span<const std::byte> bytes) {
  constexpr size_t kRecord = sizeof(TruthCall) + 2 * TRUTH_ARENA_BYTES;
  std::vector<TrueCall> calls;
  for (size_t at = 0; at + kRecord <= bytes.size(); at += kRecord) {
    TrueCall& call = calls.emplace_back();
    std::memcpy(&call.call, bytes.data() + at, sizeof(call.call));
    call.before = bytes.subspan(at + sizeof(TruthCall), TRUTH_ARENA_BYTES);
    call.after = bytes.subspan(at + sizeof(TruthCall) + TRUTH_ARENA_BYTES,
                               TRUTH_ARENA_BYTES);
  }
  return calls;
}

struct Compared {
  std::map<uint64_t, int> calls;  // by number
  uint64_t changed_bytes = 0;
};

void Compare(const TrueCall& truth, const SyscallInput& seen, bool has_times,
             Compared& compared) {
  EXPECT_EQ(seen.result, truth.call.result);
  std::vector<std::byte> memory(truth.before.begin(), truth.before.end());
  for (const MemoryWrite& write : seen.writes) {
    for (size_t i = 0; i < write.bytes.size(); ++i) {
      const uint64_t offset = write.addr.as_int() + i - truth.call.arena;
      if (offset < memory.size()) {  // there is no truth about other memory
        memory[offset] = write.bytes[i];
      }
    }
  }
  EXPECT_TRUE(std::ranges::equal(memory, truth.after))
      << "the arena differs after call " << seen.number;
  if (has_times) {
    EXPECT_GE(seen.entered_tsc.as_int(), truth.call.tsc_before);
    EXPECT_LE(seen.left_tsc.as_int(), truth.call.tsc_after);
    EXPECT_GT(seen.left_tsc, TscTicks(0));
  } else {
    EXPECT_EQ(seen.entered_tsc, TscTicks(0));
  }
  ++compared.calls[seen.number];
  for (size_t i = 0; i < memory.size(); ++i) {
    compared.changed_bytes += truth.before[i] != truth.after[i] ? 1 : 0;
  }
}

// The call of the truth among `records` from `at` on, which moves behind it.
const SyscallInput* Find(const TruthCall& truth,
                         const std::vector<InputRecord>& records, size_t& at) {
  while (at < records.size()) {
    const auto* call = std::get_if<SyscallInput>(&records[at++]);
    if (call != nullptr && call->number == truth.number &&
        std::ranges::equal(call->args, truth.args)) {
      return call;
    }
  }
  return nullptr;
}

class HardwareInputsTest : public HardwareFixture {
 protected:
  HardwareInputsTest() : HardwareFixture({"--inputs"}) {
    fs::create_directory(Folder());
  }

  std::string Folder() const { return scratch_.Path("truth"); }

  // A recording of the program that writes the truth into Folder(), started by
  // `prefix`; the report.
  json RecordTruth(const std::string& bundle, const std::string& ring,
                   const std::string& rate,
                   const std::vector<std::string>& prefix = {}) {
    std::vector<std::string> words = {
        "--inputs-buffer", ring, "--inputs-rate", rate, "--json", "--"};
    words.insert(words.end(), prefix.begin(), prefix.end());
    words.insert(words.end(), {BpfTraceePath(), Folder()});
    const auto run = Clew(Record(bundle, words));
    EXPECT_EQ(run.exit_status, 0) << run.text;
    return JsonIn(run.text)["inputs"];
  }

  // Recorder, manifest, log, `info` and `check` say the same.
  void ExpectSameNumbers(const std::string& path, const json& report);
};

void HardwareInputsTest::ExpectSameNumbers(const std::string& path,
                                           const json& report) {
  const json info = Info(path);
  const auto bundle = Bundle::Open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  auto inputs = bundle->OpenInputs();
  ASSERT_TRUE(inputs) << inputs.error().message;
  uint64_t in_log = 0;
  for (const json& thread : info["threads"]) {
    in_log += UnknownIn(RecordsOf(**inputs, Tid(thread["thread"])));
  }
  EXPECT_EQ(report["unknown"], in_log);
  EXPECT_EQ(bundle->manifest().inputs_unknown, in_log);
  EXPECT_EQ(info["loss"]["inputs_unknown"], in_log);
  EXPECT_EQ(info["inputs"]["unknown"], in_log);
  EXPECT_EQ(info["inputs"]["calls"], report["calls"]);
  uint64_t by_cause = 0;
  for (const auto& [cause, count] :
       info["inputs"]["unknown_by_cause"].items()) {
    by_cause += count.get<uint64_t>();
  }
  EXPECT_EQ(by_cause, in_log);
  EXPECT_EQ(report["bytes"], fs::file_size(path + "/inputs.pb"));
  const std::string checked = Clew({"check", path}).text;
  const std::string told = " inputs are not known";
  EXPECT_THAT(checked, in_log == 0
                           ? Matcher<std::string>(Not(HasSubstr(told)))
                           : HasSubstr("- " + std::to_string(in_log) + told));
}

TEST_F(HardwareInputsTest, EveryCallOfTheProgramIsThereAsItSawIt) {
  const std::string path = scratch_.Path("b");
  const json report = RecordTruth(path, "128M", "8G");
  const auto bundle = Bundle::Open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  const bool has_times = bundle->manifest().conversion.mult != 1;
  auto inputs = bundle->OpenInputs();
  ASSERT_TRUE(inputs) << inputs.error().message;
  Compared compared;
  for (int i = 0; i < 4; ++i) {
    const auto bytes = ReadWholeFile(Folder() + "/truth." + std::to_string(i));
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto truth = TruthIn(*bytes);
    ASSERT_GT(truth.size(), 100u);
    const auto records =
        RecordsOf(**inputs, Tid(static_cast<int32_t>(truth[0].call.thread)));
    size_t at = 0;
    for (const TrueCall& call : truth) {
      const SyscallInput* const seen = Find(call.call, records, at);
      ASSERT_NE(seen, nullptr)
          << "thread " << i << ": no call " << call.call.number;
      Compare(call, *seen, has_times, compared);
    }
  }
  // Of files, pipes and the kernel's random numbers.
  EXPECT_GE(compared.calls[__NR_read], 8 * 4 * 2);
  EXPECT_GE(compared.calls[__NR_pread64], 2 * 4 * 2);
  EXPECT_EQ(compared.calls[__NR_getrandom], 4 * 2);
  EXPECT_GT(compared.changed_bytes, uint64_t{4 * 2 * 20'000});
  ExpectSameNumbers(path, report);
}

// Stops the recorder, its parent, until the program that it becomes has ended,
// so that no machine has a recorder that reads as fast as the program calls.
const std::vector<std::string> kWithoutReader = {
    "/bin/sh", "-c",
    "(until grep -q '^State:.Z' /proc/$$/status; do sleep 0.01; done;"
    " kill -CONT $PPID) & kill -STOP $PPID; exec \"$@\"",
    "sh"};

TEST_F(HardwareInputsTest, WhatIsLostIsCountedTheSameEverywhere) {
  for (const char* ring : {"64K", "1M"}) {
    // The one is too small for what comes. The other is not, but for so little
    // in a second the program would have to run for minutes.
    const std::string path = scratch_.Path(ring);
    const bool small = std::string(ring) == "64K";
    const json report = small ? RecordTruth(path, ring, "8G", kWithoutReader)
                              : RecordTruth(path, ring, "256K");
    EXPECT_GT(report["unknown"], 20);
    EXPECT_GT(report["calls"], 0);
    ExpectSameNumbers(path, report);
    const auto text = Clew({"info", "--no-backtraces", path}).text;
    EXPECT_THAT(text, HasSubstr(small ? "\"the ring was full\""
                                      : "\"the budget of bytes a second was "
                                        "spent\""));
  }
}

// A process that asks for random numbers until it is killed, and writes them
// down.
class RandomReader {
 public:
  explicit RandomReader(const std::string& file) {
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::ofstream log(file, std::ios::binary);
      while (true) {
        char bytes[16] = {};
        syscall(SYS_getrandom, bytes, sizeof(bytes), 0);
        log.write(bytes, sizeof(bytes)).flush();
        Nap();
      }
    }
  }
  RandomReader(const RandomReader&) = delete;
  RandomReader& operator=(const RandomReader&) = delete;
  ~RandomReader() { End(); }
  pid_t process() const { return child_; }
  void End() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
      child_ = -1;
    }
  }

 private:
  pid_t child_ = -1;
};

// What getrandom gave the thread, by the log.
std::string RandomBytesIn(const std::string& path, Tid thread) {
  const auto bundle = Bundle::Open(path);
  EXPECT_TRUE(bundle) << bundle.error().message;
  auto inputs = bundle->OpenInputs();
  EXPECT_TRUE(inputs) << inputs.error().message;
  std::string seen;
  for (const InputRecord& record : RecordsOf(**inputs, thread)) {
    const auto* call = std::get_if<SyscallInput>(&record);
    if (call != nullptr && call->number == __NR_getrandom) {
      EXPECT_EQ(call->writes.size(), 1u);
      for (const MemoryWrite& write : call->writes) {
        seen.append(reinterpret_cast<const char*>(write.bytes.data()),
                    write.bytes.size());
      }
    }
  }
  return seen;
}

TEST_F(HardwareInputsTest, AProcessHasTheInputsOfTheTimeOfTheRecording) {
  const std::string file = scratch_.Path("numbers");
  const std::string path = scratch_.Path("b");
  RandomReader reader(file);
  const int process = reader.process();
  std::string seen;
  ASSERT_TRUE(RecordUntil(path, {"--pid", std::to_string(process)}, [&] {
    seen = RandomBytesIn(path, Tid(process));
    return seen.size() > 20u * 16;  // of some 900 numbers in a second
  }));
  const auto size = fs::file_size(file);  // the last may not be there yet
  ASSERT_TRUE(
      test::WaitUntil([&] { return fs::file_size(file) >= size + 16; }));
  reader.End();
  std::ifstream log(file, std::ios::binary);
  const std::string truth(std::istreambuf_iterator<char>(log), {});
  EXPECT_NE(truth.find(seen), std::string::npos)
      << "what was recorded is no piece of what the process got";
}

TEST_F(HardwareInputsTest, ARecorderThatDiesLeavesNoBundle) {
  const std::string path = scratch_.Path("b");
  const std::string mark = scratch_.Path("runs");
  const pid_t child = fork();
  if (child == 0) {
    const auto words = Record(path, {"--", "/bin/sh", "-c",
                                     "echo $$ > " + mark + "; exec sleep 600"});
    std::vector<std::string> all = {Binary()};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  pid_t program = 0;
  const bool runs = test::WaitUntil(
      [&] { return static_cast<bool>(std::ifstream(mark) >> program); });
  const bool has_log = fs::exists(path + ".partial/inputs.pb");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(runs);
  EXPECT_EQ(kill(program, SIGKILL), 0) << "it ended before its recorder";
  ASSERT_TRUE(has_log);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + ".partial/manifest.pb"));
  const auto run = Clew({"info", path + ".partial"});
  EXPECT_EQ(run.exit_status, 2) << run.text;
  EXPECT_THAT(run.text, HasSubstr("not finished"));
}

TEST_F(HardwareInputsTest, WhatHasNoInputsIsRefusedAndLeavesNothing) {
  const std::string bundle = scratch_.Path("b");
  struct Case {
    std::vector<std::string> words;
    const char* says;
  };
  const std::vector<Case> cases = {
      {{"--system-wide"}, "the input log of a bundle is of one process"},
      {{"--unit", "a.service"}, "no unit \"a.service\" runs here"},
      {{"--cgroup", "/a"}, "the input log of a bundle is of one process"},
      {{"--snapshot", "--", "/bin/true"}, "--inputs and --snapshot exclude"},
      {{"--inputs-buffer", "3M", "--", "/bin/true"}, "wanted a power of two"},
      {{"--inputs-buffer", "4X", "--", "/bin/true"}, "--inputs-buffer: wanted"},
      {{"--inputs-rate", "5", "--", "/bin/true"}, "bytes_per_second is 5"}};
  for (const Case& wrong : cases) {
    const auto run = Clew(Record(bundle, wrong.words));
    EXPECT_EQ(run.exit_status, 2) << run.text;
    EXPECT_THAT(run.text, HasSubstr(wrong.says));
    EXPECT_FALSE(fs::exists(bundle) || fs::exists(bundle + ".partial"));
  }
  EXPECT_EQ(
      Clew({"record", "--inputs", "-o", bundle, "--", "/bin/true"}).exit_status,
      2);
  EXPECT_EQ(Clew({"record", "--source", "perf", "--sideband-only",
                  "--inputs-rate", "1M", "-o", bundle, "--", "/bin/true"})
                .exit_status,
            2);
}

TEST_F(HardwareInputsTest, WithoutPermissionTheErrorSaysWhatHelps) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can do without permissions";
  }
  const std::string open = scratch_.Path("open");
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  fs::permissions(fs::path(open).parent_path(), fs::perms::others_exec,
                  fs::perm_options::add);
  const std::vector<std::string> nobody = {"setpriv", "--reuid=65534",
                                           "--regid=65534", "--clear-groups",
                                           "--inh-caps=-all"};
  auto words = nobody;
  words.insert(words.end(), {"test", "-x", Binary()});
  if (e2e::Run(words).exit_status != 0) {
    GTEST_SKIP() << "others may not execute " << Binary();
  }
  words = nobody;
  words.push_back(Binary());
  const auto record = Record(open + "/b", {"--", "/bin/true"});
  words.insert(words.end(), record.begin(), record.end());
  const auto run = e2e::Run(words);
  EXPECT_EQ(run.exit_status, 3) << run.text;
  EXPECT_THAT(run.text, HasSubstr("CAP_PERFMON"));
  EXPECT_TRUE(fs::is_empty(open));
}

// --- What the recorder asks of whoever records inputs.

class FakeTap final : public recorder::InputTap {
 public:
  explicit FakeTap(std::vector<std::string>* log = nullptr) : log_(log) {}
  Status Open(int32_t process, bool from_exec, bool) override {
    Log("open");
    opened_with = process;
    of_exec = from_exec;
    return {};
  }
  Status Start() override {
    Log("start");
    // It waits for its execve.
    std::error_code error;
    program = fs::read_symlink(fmt::format("/proc/{}/exe", opened_with), error);
    return {};
  }
  Status Check() override {
    ++checks;
    return fails ? Status(SystemError(ENOSPC, "the disk is full")) : Status();
  }
  Result<uint64_t> Finish() override {
    Log("finish");
    finished = true;
    return 42;
  }

  bool fails = false;
  int32_t opened_with = 0;
  bool of_exec = false;
  fs::path program;
  int checks = 0;
  bool finished = false;

 private:
  void Log(const char* what) {
    if (log_ != nullptr) {
      log_->emplace_back(what);
    }
  }
  std::vector<std::string>* const log_;
};

class FakeStart final : public recorder::StartTap {
 public:
  FakeStart(std::vector<std::string>& log, Status stopped)
      : log_(log), stopped_(std::move(stopped)) {}
  Result<std::optional<int>> Launch(int32_t,
                                    const std::function<void()>&) override {
    return Unsupported("it was to be attached to");
  }
  Status Stop(int32_t) override {
    log_.emplace_back("stop");
    return stopped_;
  }
  Status LetGo() override {
    log_.emplace_back("let go");
    return {};
  }
  Status GiveBack() override {
    log_.emplace_back("give back");
    return {};
  }

 private:
  std::vector<std::string>& log_;
  const Status stopped_;
};

TEST_F(HardwareInputsTest, TheRecorderStartsInputsBeforeTheProgram) {
  FakeTap tap;
  recorder::PerfRecordOptions options;
  options.command = {"/bin/true"};
  options.inputs = &tap;
  const auto recorded = recorder::RecordWithPerf(
      recorder::perf::RealPerfKernel(), PosixFileSystem(), options,
      scratch_.Path("perf.data"));
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_EQ(tap.opened_with, recorded->run.failure.thread.as_int());
  EXPECT_TRUE(tap.of_exec);
  EXPECT_EQ(tap.program, fs::canonical("/proc/self/exe"));
  EXPECT_TRUE(tap.finished);
  EXPECT_EQ(recorded->run.inputs_unknown, 42u);
}

TEST_F(HardwareInputsTest, AnErrorOfInputsEndsTheRecording) {
  FakeTap tap;
  tap.fails = true;
  recorder::PerfRecordOptions options;
  options.command = {"/bin/sleep", "600"};
  options.inputs = &tap;
  const auto recorded = recorder::RecordWithPerf(
      recorder::perf::RealPerfKernel(), PosixFileSystem(), options,
      scratch_.Path("perf.data"));
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().message, HasSubstr("the disk is full"));
  EXPECT_FALSE(tap.finished);
  EXPECT_NE(kill(tap.opened_with, 0), 0) << "the program still runs";
}

// What the recorder did to a process that it attached to, whose start could be
// described if `stopped` is no error.
std::vector<std::string> LogOfAttaching(const std::string& perf_data,
                                        const Status& stopped,
                                        std::string* no_start) {
  const auto pid = SpawnProgram({"/bin/sleep", "600"}, {});
  std::vector<std::string> log;
  FakeTap tap(&log);
  FakeStart start(log, stopped);
  const volatile std::sig_atomic_t stop = 1;
  recorder::PerfRecordOptions options;
  options.process = pid.value();
  options.inputs = &tap;
  options.start = &start;
  options.stop = &stop;
  const auto recorded = recorder::RecordWithPerf(
      recorder::perf::RealPerfKernel(), PosixFileSystem(), options, perf_data);
  EXPECT_TRUE(recorded) << recorded.error().message;
  *no_start = recorded ? recorded->no_start : "";
  kill(*pid, SIGKILL);
  (void)WaitForChild(*pid);
  return log;
}

// It is stopped for no longer than is needed, and inputs begin meanwhile.
TEST_F(HardwareInputsTest, AProcessIsStoppedWhileInputsBegin) {
  std::string no_start;
  EXPECT_THAT(LogOfAttaching(scratch_.Path("perf.data"), Status(), &no_start),
              testing::ElementsAre("open", "stop", "start", "let go", "finish",
                                   "give back"));
  EXPECT_EQ(no_start, "");
}

TEST_F(HardwareInputsTest, AProcessThatCannotBeDescribedIsRecordedAllTheSame) {
  std::string no_start;
  EXPECT_THAT(
      LogOfAttaching(scratch_.Path("perf.data"),
                     Unsupported("another program traces it"), &no_start),
      testing::ElementsAre("open", "stop", "start", "finish"));
  EXPECT_EQ(no_start, "another program traces it");
}

}  // namespace
}  // namespace clew::e2e
