// Goal: a session on the real kernel tells all that a multithreaded program
// did: its threads, their names and ends, every mmap with the file's build-id,
// every context switch; what it does not tell is counted as lost.
// Method: a tracee that reports on itself, the software dummy event, and
// comparison with that report, with /proc and with the ELF note of the tracee.
// CPUs come and go in a sysfs of the test's own. Skipped, with the reason,
// where perf_event_open is refused.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/os/file.h"
#include "recorder/perf/perf_session.h"
#include "tests/support/wait_until.h"

namespace clew::recorder::perf {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kThreads = 8;  // of sideband_tracee.c
constexpr int kSwitches = 50;
constexpr uint64_t kRingBytes = 4096;  // the smallest

std::string TraceePath() {
  return fs::canonical("/proc/self/exe").parent_path() /
         "perf/recorder_perf_tracee";
}

// Everything that came, by kind.
struct Recorder final : SessionSink {
  Status OnEvent(CoreId core, const RecordView& record,
                 const Event& event) override {
    bytes[core] += record.bytes.size();
    EXPECT_EQ(event.id.core, core);
    EXPECT_GE(event.id.time, last_time[core])
        << "out of order on " << core.as_int();
    last_time[core] = event.id.time;
    ++events;
    std::visit([&](const auto& body) { Take(event.id, body); }, event.body);
    return {};
  }
  Status OnAux(CoreId, const AuxRingPiece&) override {
    return InvalidArgument("AUX bytes without PT");
  }
  void OnGap(CoreId, const AuxGap&) override { ADD_FAILURE(); }

  void Take(const bundle::OwnSampleId&, const bundle::TaskRecord& task) {
    (task.exited ? exits : forks).push_back(task);
  }
  void Take(const bundle::OwnSampleId&, const bundle::CommRecord& comm) {
    names[comm.tid].emplace_back(comm.name);
    execs += comm.exec ? 1 : 0;
  }
  void Take(const bundle::OwnSampleId& id, const bundle::SwitchRecord& event) {
    ++(event.out ? outs : ins)[id.thread];
  }
  void Take(const bundle::OwnSampleId&, const bundle::MmapView& mmap) {
    mmaps.push_back(
        {std::string(mmap.path), {mmap.build_id.begin(), mmap.build_id.end()}});
  }
  void Take(const bundle::OwnSampleId& id, const bundle::LostRecord& lost) {
    lost_count += lost.count;
    lost_on[id.core] += lost.count;
  }
  void Take(const bundle::OwnSampleId&, const auto&) {}

  struct Mapped {
    std::string path;
    std::vector<std::byte> build_id;
  };
  std::map<CoreId, PerfNanos> last_time;
  std::map<CoreId, uint64_t> bytes, lost_on;
  uint64_t events = 0, execs = 0, lost_count = 0;
  std::vector<bundle::TaskRecord> forks, exits;
  std::map<Tid, std::vector<std::string>> names;
  std::map<Tid, uint64_t> ins, outs;
  std::vector<Mapped> mmaps;
};

// The tracee, held back before its execve until Go.
class Child {
 public:
  Child() {
    EXPECT_EQ(pipe(go_.data()), 0);
    EXPECT_EQ(pipe(out_.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char byte;
      dup2(out_[1], STDOUT_FILENO);
      close(go_[1]);
      (void)!read(go_[0], &byte, 1);
      const std::string path = TraceePath();
      execl(path.c_str(), path.c_str(), nullptr);
      _exit(127);
    }
    close(out_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    Go();
    (void)Join();
    close(go_[0]);
    close(out_[0]);
  }
  void Go() {
    if (!gone_) {
      close(go_[1]);
      gone_ = true;
    }
  }
  // Its output; waits for its end the first time.
  const std::string& Join() {
    if (joined_) {
      return output_;
    }
    joined_ = true;
    std::array<char, 256> buffer;
    for (ssize_t n; (n = read(out_[0], buffer.data(), buffer.size())) > 0;) {
      output_.append(buffer.data(), static_cast<size_t>(n));
    }
    int status = 0;
    rusage usage = {};
    EXPECT_EQ(wait4(pid_, &status, 0, &usage), pid_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    switches_ = static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
    return output_;
  }
  int pid() const { return pid_; }
  // How often the kernel switched its threads out, from before its execve on.
  // REQUIRES: it was joined.
  uint64_t switches() const { return switches_; }

 private:
  std::array<int, 2> go_ = {}, out_ = {};
  int pid_ = 0;
  bool gone_ = false, joined_ = false;
  std::string output_;
  uint64_t switches_ = 0;
};

// The CPUs that this thread may run on.
std::vector<CoreId> UsableCores() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<CoreId> cores;
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) {
      cores.emplace_back(core);
    }
  }
  return cores;
}

// While it lives, this thread, and what it starts, runs on these CPUs.
class BoundTo {
 public:
  explicit BoundTo(const std::vector<CoreId>& cores) {
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const CoreId core : cores) {
      CPU_SET(core.as_int(), &set);
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  }
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;
  ~BoundTo() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_ = {};
};

// NT_GNU_BUILD_ID of an ELF file, by its program headers.
std::vector<std::byte> BuildIdOf(const std::string& path) {
  const auto file = ReadWholeFile(path);
  EXPECT_TRUE(file);
  const std::byte* data = file->data();
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, data + header.e_phoff + i * sizeof(segment),
                sizeof(segment));
    for (size_t at = 0; segment.p_type == PT_NOTE && at < segment.p_filesz;) {
      Elf64_Nhdr note;
      std::memcpy(&note, data + segment.p_offset + at, sizeof(note));
      const size_t name = at + sizeof(note);
      const size_t description = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
        const auto* begin = data + segment.p_offset + description;
        return {begin, begin + note.n_descsz};
      }
      at = description + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return {};
}

// Why no events can be opened here; empty if they can.
std::string Refused() {
  const auto session = PerfSession::Open(
      RealPerfKernel(), {.threads = {static_cast<int>(getpid())}});
  return session ? "" : session.error().message;
}

#define SKIP_WHERE_REFUSED() \
  if (const auto reason = Refused(); !reason.empty()) GTEST_SKIP() << reason

void DrainUntilEnd(PerfSession& session, Child& child, Recorder& recorder) {
  std::atomic<bool> ended = false;
  std::thread joiner([&] {
    (void)child.Join();
    ended = true;
  });
  while (!ended) {
    ASSERT_TRUE(session.Wait(20));
    ASSERT_TRUE(session.Drain(recorder));
  }
  joiner.join();
  ASSERT_TRUE(session.Disable());
  ASSERT_TRUE(session.Finish(recorder));
}

// One line of the tracee's report each.
struct Reported {
  int index;
  int tid;
  uint64_t switches;
};
std::vector<Reported> ParseReport(const std::string& text) {
  std::vector<Reported> list;
  std::istringstream lines(text);
  for (Reported one; lines >> one.index >> one.tid >> one.switches;) {
    list.push_back(one);
  }
  return list;
}

TEST(SessionTest, TellsThreadsNamesMmapsAndSwitchesOfAProgram) {
  SKIP_WHERE_REFUSED();
  Child child;
  auto session = PerfSession::Open(
      RealPerfKernel(), {.threads = {child.pid()}, .enable_on_exec = true});
  ASSERT_TRUE(session) << session.error().message;
  Recorder recorder;
  child.Go();
  DrainUntilEnd(*session, child, recorder);
  const auto reports = ParseReport(child.Join());
  ASSERT_EQ(reports.size(), size_t{kThreads});

  EXPECT_EQ(recorder.forks.size(), size_t{kThreads});
  EXPECT_EQ(recorder.exits.size(), size_t{kThreads} + 1);
  EXPECT_EQ(recorder.execs, 1u);
  uint64_t outs = 0;
  for (const auto& [tid, count] : recorder.outs) {
    outs += count;
  }
  EXPECT_LE(outs, child.switches()) << "none came twice";
  for (const Reported& report : reports) {
    const Tid tid(report.tid);
    const auto is_it = [&](const bundle::TaskRecord& task) {
      return task.tid == tid && task.pid == child.pid();
    };
    EXPECT_EQ(std::ranges::count_if(recorder.forks, is_it), 1);
    EXPECT_EQ(std::ranges::count_if(recorder.exits, is_it), 1);
    EXPECT_THAT(recorder.names[tid],
                testing::ElementsAre("clew-" + std::to_string(report.index)));
    EXPECT_GE(report.switches, uint64_t{kSwitches});
    EXPECT_GE(recorder.outs[tid], report.switches);
    // The event ends with the task, before the last switch or after.
    EXPECT_LE(recorder.outs[tid], recorder.ins[tid] + 1);
    EXPECT_LE(recorder.ins[tid], recorder.outs[tid] + 1);
  }
  EXPECT_EQ(recorder.lost_count, 0u);
  EXPECT_EQ(session->counts().lost_records, 0u);
  EXPECT_EQ(session->counts().skipped_bytes, 0u);
  EXPECT_EQ(session->counts().events, recorder.events);

  const auto tracee = std::ranges::find_if(recorder.mmaps, [](const auto& m) {
    return m.path.ends_with("/recorder_perf_tracee");
  });
  ASSERT_NE(tracee, recorder.mmaps.end());
  EXPECT_EQ(tracee->build_id, BuildIdOf(TraceePath()));
  EXPECT_FALSE(tracee->build_id.empty());
  EXPECT_TRUE(std::ranges::any_of(recorder.mmaps, [](const auto& m) {
    return m.path.find("/libc.so") != std::string::npos && !m.build_id.empty();
  }));
}

// On one CPU: the rings of many might have room for all.
TEST(SessionTest, AFullRingCountsWhatTheKernelDropped) {
  const CoreId core = UsableCores().front();
  const BoundTo bound({core});
  auto session =
      PerfSession::Open(RealPerfKernel(), {.data_bytes = kRingBytes});
  if (!session) {
    GTEST_SKIP() << session.error().message;
  }
  ASSERT_TRUE(session->Enable());
  Child child;
  child.Go();
  const auto reports = ParseReport(child.Join());
  ASSERT_EQ(reports.size(), size_t{kThreads});
  // Nothing was drained while it ran. Its CPU tells of its losses ahead of the
  // first record that fits again: of this thread's waits there.
  Recorder recorder;
  ASSERT_TRUE(session->Drain(recorder));
  const uint64_t told = recorder.lost_on[core];
  ASSERT_TRUE(test::WaitUntil([&] {
    EXPECT_TRUE(session->Drain(recorder));
    return recorder.lost_on[core] > told;
  }));
  ASSERT_TRUE(session->Disable());
  uint64_t wanted = 0;
  uint64_t got = 0;
  for (const Reported& report : reports) {
    wanted += 2 * report.switches;
    got += recorder.ins[Tid(report.tid)] + recorder.outs[Tid(report.tid)];
  }
  EXPECT_LT(got, wanted) << "the rings were never full";
  EXPECT_GE(got + recorder.lost_count, wanted);
  EXPECT_EQ(session->counts().lost_records, recorder.lost_count);
  ASSERT_TRUE(session->Finish(recorder));
}

// On one CPU, for the same reason.
TEST(SessionTest, SnapshotHasTheNewestRecordsAndPausesOnlyMeanwhile) {
  SKIP_WHERE_REFUSED();
  const BoundTo bound({UsableCores().front()});
  Child child;
  auto session =
      PerfSession::Open(RealPerfKernel(), {.threads = {child.pid()},
                                           .enable_on_exec = true,
                                           .snapshot = true,
                                           .data_bytes = kRingBytes});
  ASSERT_TRUE(session) << session.error().message;
  child.Go();
  const auto reports = ParseReport(child.Join());
  Recorder recorder;
  const Status status = session->Snapshot(recorder);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_GT(session->counts().overwritten_bytes, 0u);
  // The process's own end is the newest of all; its first mmaps are gone.
  EXPECT_TRUE(
      std::ranges::any_of(recorder.exits, [&](const bundle::TaskRecord& task) {
        return task.tid == Tid(child.pid());
      }));
  // What came fits in the rings, and one of them was full.
  uint64_t most = 0;
  for (const auto& [core, bytes] : recorder.bytes) {
    EXPECT_LE(bytes, kRingBytes);
    most = std::max(most, bytes);
  }
  EXPECT_GT(most, kRingBytes - 200);
  Recorder again;
  ASSERT_TRUE(session->Snapshot(again));
  EXPECT_EQ(again.events, 0u) << "records came twice";
}

// A folder that says which CPUs are online.
class FakeSys {
 public:
  FakeSys() {
    std::string pattern = fs::temp_directory_path() / "clew-sys-XXXXXX";
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ + "/devices/system/cpu");
  }
  FakeSys(const FakeSys&) = delete;
  FakeSys& operator=(const FakeSys&) = delete;
  ~FakeSys() { fs::remove_all(root_); }
  void SetOnline(const std::string& list) {
    std::ofstream(root_ + "/devices/system/cpu/online") << list << "\n";
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

// The program stays on the two CPUs that the test's own sysfs knows.
TEST(SessionTest, EventsFollowCpusThatComeAndGo) {
  SKIP_WHERE_REFUSED();
  const std::vector<CoreId> usable = UsableCores();
  if (usable.size() < 2) {
    GTEST_SKIP() << "one CPU only";
  }
  const BoundTo bound({usable[0], usable[1]});
  const std::string one = std::to_string(usable[0].as_int());
  const std::string both = one + "," + std::to_string(usable[1].as_int());
  FakeSys sys;
  sys.SetOnline(one);
  Child child;
  auto session = PerfSession::Open(
      RealPerfKernel(), {.threads = {child.pid()}, .sys = sys.root()});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE(session->Enable());
  EXPECT_EQ(session->cores().size(), 1u);
  Recorder recorder;
  sys.SetOnline(both);
  ASSERT_TRUE(session->FollowCores(recorder));
  EXPECT_EQ(session->cores().size(), 2u);
  child.Go();
  (void)child.Join();
  // The second one goes before anything was drained: its records must come.
  sys.SetOnline(one);
  ASSERT_TRUE(session->FollowCores(recorder));
  EXPECT_EQ(session->cores(), std::vector<CoreId>{usable[0]});
  EXPECT_EQ(session->counts().cores_added, 1u);
  EXPECT_EQ(session->counts().cores_gone, 1u);
  ASSERT_TRUE(session->Finish(recorder));
  EXPECT_EQ(session->counts().events, recorder.events);
  EXPECT_EQ(recorder.lost_count, 0u);
  EXPECT_EQ(recorder.forks.size(), size_t{kThreads});
  for (const Reported& report : ParseReport(child.Join())) {
    EXPECT_GE(recorder.outs[Tid(report.tid)], report.switches);
  }
  sys.SetOnline("nonsense");
  EXPECT_FALSE(session->FollowCores(recorder));
}

TEST(SessionTest, ConversionGivesThePageOrSaysThatThereIsNone) {
  SKIP_WHERE_REFUSED();
  const auto session = PerfSession::Open(
      RealPerfKernel(), {.threads = {static_cast<int>(getpid())}});
  ASSERT_TRUE(session) << session.error().message;
  const auto conversion = session->Conversion();
  if (conversion) {
    EXPECT_GT(conversion->mult, 0u);
    EXPECT_LT(conversion->shift, 64u);
  } else {
    EXPECT_THAT(conversion.error().message, HasSubstr("cap_user_time_zero"));
  }
}

// Refuses the k-th call of OpenEvent.
class RefusingKernel final : public PerfKernel {
 public:
  RefusingKernel(int refuse_at, int error) : left_(refuse_at), error_(error) {}
  Result<Fd> OpenEvent(const perf_event_attr& attr, int32_t thread,
                       int core) override {
    if (left_-- == 0) {
      return SystemError(error_, "cannot open it");
    }
    return RealPerfKernel().OpenEvent(attr, thread, core);
  }
  Result<MappedMemory> Map(const Fd& event, uint64_t offset, size_t bytes,
                           bool writable) override {
    return RealPerfKernel().Map(event, offset, bytes, writable);
  }
  Status Control(const Fd& event, unsigned long request, unsigned long argument,
                 std::string_view what) override {
    return RealPerfKernel().Control(event, request, argument, what);
  }
  Result<Fd> MakePoller() override { return RealPerfKernel().MakePoller(); }
  Status Watch(const Fd& poller, const Fd& event) override {
    return RealPerfKernel().Watch(poller, event);
  }
  Result<bool> Wait(const Fd& poller, int timeout_ms) override {
    return RealPerfKernel().Wait(poller, timeout_ms);
  }
  Status WaitForWriters() override { return RealPerfKernel().WaitForWriters(); }

 private:
  int left_;
  int error_;
};

TEST(SessionTest, WantOfPermissionSaysWhatWouldHelp) {
  RefusingKernel kernel(0, EACCES);
  const auto session = PerfSession::Open(kernel, {});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::kSystem);
  EXPECT_THAT(session.error().message,
              testing::AllOf(HasSubstr("perf_event_paranoid is"),
                             HasSubstr("CAP_PERFMON")));
}

TEST(SessionTest, PtWithoutPmuAndBadSizesAreRefused) {
  FakeSys sys;
  sys.SetOnline("0");
  const auto no_pt = PerfSession::Open(RealPerfKernel(),
                                       {.pt = PtOptions(), .sys = sys.root()});
  ASSERT_FALSE(no_pt);
  EXPECT_EQ(no_pt.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(no_pt.error().message, HasSubstr("no intel_pt event source"));
  const auto size = PerfSession::Open(RealPerfKernel(), {.data_bytes = 5000});
  ASSERT_FALSE(size);
  EXPECT_THAT(size.error().message, HasSubstr("found 5000"));
  const auto mixed = PerfSession::Open(RealPerfKernel(),
                                       {.pt = PtOptions(), .snapshot = true});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace clew::recorder::perf
