// Goal: what a kernel with Intel PT wrote to its rings comes out of the
// recorder as a perf.data that decodes to the instructions that were executed:
// all of them where nothing was lost, and with a gap at every place where the
// AUX ring was full; a snapshot has the end of the run. Records come through
// unchanged. Method: property; random programs on several cores, traced by our
// encoder, whose true instructions are known. A kernel of the test's own hands
// records and bytes on in random portions. Oracle: the truth, and perf script.
#include "recorder/perf_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/digest.h"
#include "decoder/perf_trace.h"
#include "decoder/streams.h"
#include "tests/decoder/perf_script.h"
#include "tests/decoder/synthetic.h"
#include "tests/recorder/perf/pt_kernel.h"
#include "tests/recorder/value_at.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using bundle::BuildPtInfo;
using bundle::PerfData;
using bundle::PerfFileHead;
using bundle::PtInfo;
using decoder::Synthetic;
using decoder::TrueInsn;
using perf::PtSysfs;

struct KernelRecord {
  CoreId core;
  uint64_t nanos = 0;
  std::vector<std::byte> bytes;
};

// The records of a perf.data that are the kernel's, in the order of the file;
// those of PT's own event are left out.
std::vector<KernelRecord> SidebandOf(const std::string& path) {
  const auto file = ReadWholeFile(path).value();
  const std::span<const std::byte> bytes(file);
  std::vector<KernelRecord> records;
  size_t at = ValueAt<uint64_t>(bytes, 40);
  const size_t end = at + ValueAt<uint64_t>(bytes, 48);
  while (at < end) {
    const auto type = ValueAt<uint32_t>(bytes, at);
    const auto size = ValueAt<uint16_t>(bytes, at + 6);
    const bool own = type >= 64 || type == PERF_RECORD_AUX ||
                     type == PERF_RECORD_ITRACE_START;
    if (!own) {
      const auto record = bytes.subspan(at, size);
      records.push_back({.core = CoreId(ValueAt<uint32_t>(record, size - 16u)),
                         .nanos = ValueAt<uint64_t>(record, size - 24u),
                         .bytes = {record.begin(), record.end()}});
    }
    at += size + (type == 71 ? ValueAt<uint64_t>(bytes, at + 8) : 0);
  }
  return records;
}

constexpr size_t kPsbBytes = 16;

bool IsPsb(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < kPsbBytes; ++i) {
    const auto wanted = static_cast<std::byte>(i % 2 == 0 ? 0x02 : 0x82);
    if (i >= bytes.size() || bytes[i] != wanted) {
      return false;
    }
  }
  return true;
}

// As the kernel reports switches where it records whole CPUs: with the thread
// that comes or went, here always the idle one.
std::vector<std::byte> ToCpuWide(const std::vector<std::byte>& record) {
  if (ValueAt<uint32_t>(record, 0) != PERF_RECORD_SWITCH) {
    return record;
  }
  std::vector<std::byte> wide(record.begin(), record.begin() + 8);
  wide.resize(16);
  wide.insert(wide.end(), record.begin() + 8, record.end());
  const uint32_t type = PERF_RECORD_SWITCH_CPU_WIDE;
  const auto size = static_cast<uint16_t>(wide.size());
  std::memcpy(wide.data(), &type, sizeof type);
  std::memcpy(wide.data() + 6, &size, sizeof size);
  return wide;
}

// A run that the kernel has seen, to be told to a recording bit by bit.
class ToldRun {
 public:
  ToldRun(const decoder::SyntheticConfig& config, bool cpu_wide, Random& random)
      : synthetic_(MakeSynthetic(config)),
        sideband_(SidebandOf(synthetic_->perf_path)),
        random_(random) {
    std::ranges::stable_sort(sideband_, {}, &KernelRecord::nanos);
    for (KernelRecord& record : sideband_) {
      record.bytes = cpu_wide ? ToCpuWide(record.bytes) : record.bytes;
    }
    for (const auto& [core, bytes] : synthetic_->pt) {
      const auto span = std::as_bytes(std::span(bytes));
      pt_[core] = span;
      whole_bytes_ += span.size();
    }
  }

  const Synthetic& synthetic() const { return *synthetic_; }
  const std::vector<KernelRecord>& sideband() const { return sideband_; }
  uint64_t whole_bytes() const { return whole_bytes_; }
  uint64_t untraced_bytes() const { return untraced_bytes_; }

  // One portion; false once there is nothing more. `room`: no portion is larger
  // than what its ring has room for.
  bool Tell(perf::PtKernel& kernel, bool room) {
    for (uint64_t n = random_.Below(20); n > 0 && next_ < sideband_.size();
         --n) {
      kernel.WriteRecord(sideband_[next_].core, sideband_[next_].bytes);
      last_nanos_ = sideband_[next_++].nanos;
    }
    bool more = next_ < sideband_.size();
    for (auto& [core, rest] : pt_) {
      TellPt(kernel, core, rest, room);
      more = more || !rest.empty();
    }
    return more;
  }

 private:
  void TellPt(perf::PtKernel& kernel, CoreId core,
              std::span<const std::byte>& rest, bool room) {
    if (!kernel.IsTracing(core)) {
      // What is executed now is not traced; then it begins with a PSB.
      SkipToPsb(rest);
      return;
    }
    if (must_resume_.contains(core)) {
      must_resume_.erase(core);
      SkipToPsb(rest);
    }
    uint64_t size = std::min<uint64_t>(random_.Below(700), rest.size());
    if (room) {
      size = std::min(size, kernel.AuxRoom(core));
    }
    const uint64_t fits = std::min(size, kernel.AuxRoom(core));
    if (size == 0) {
      return;
    }
    kernel.Trace(core, rest.first(size), last_nanos_);
    if (!kernel.IsTracing(core)) {
      untraced_bytes_ += size - fits;
      must_resume_.insert(core);
    }
    rest = rest.subspan(size);
  }

  void SkipToPsb(std::span<const std::byte>& rest) {
    while (!rest.empty() && !IsPsb(rest)) {
      rest = rest.subspan(1);
      ++untraced_bytes_;
    }
  }

  std::unique_ptr<Synthetic> synthetic_;
  std::vector<KernelRecord> sideband_;
  std::map<CoreId, std::span<const std::byte>> pt_;
  std::set<CoreId> must_resume_;
  size_t next_ = 0;
  uint64_t last_nanos_ = 0;
  uint64_t whole_bytes_ = 0;
  uint64_t untraced_bytes_ = 0;
  Random& random_;
};

// One decoded instruction.
struct SeenInsn {
  TraceeAddr ip;
  TscInterval time;
  CoreId core;
};

// A thread's stream, cut at its gaps.
std::vector<std::vector<SeenInsn>> StretchesOf(decoder::TraceStreams& streams,
                                               Tid tid) {
  std::vector<std::vector<SeenInsn>> stretches(1);
  while (true) {
    const auto item = streams.Next(tid);
    if (!item) {
      ADD_FAILURE() << item.error().message;
      return stretches;
    }
    const std::optional<StreamItem>& next = *item;
    if (!next) {
      return stretches;
    }
    if (std::holds_alternative<Gap>(*next)) {
      stretches.emplace_back();
      continue;
    }
    const auto& block = std::get<StreamBlock>(*next);
    const CoreId core = streams.slices()[block.slice].core;
    const Status walked =
        streams.ForEachInstruction(block, [&](const decoder::WalkedInsn& insn) {
          stretches.back().push_back({insn.ip, block.time, core});
        });
    EXPECT_TRUE(walked) << walked.error().message;
  }
}

// Whether `seen` is what was executed from truth[at] on.
bool IsAt(const std::vector<SeenInsn>& seen, const std::vector<TrueInsn>& truth,
          size_t at) {
  return seen.size() <= truth.size() - at &&
         std::ranges::equal(seen, std::span(truth).subspan(at, seen.size()),
                            [](const SeenInsn& a, const TrueInsn& b) {
                              return a.ip == b.ip && a.core == b.core &&
                                     a.time.lo <= b.time && b.time <= a.time.hi;
                            });
}

struct Checked {
  uint64_t insns = 0;
  uint64_t gaps = 0;
  bool from_start = true;
  bool to_the_end = false;
};

// Every stretch must be of the truth, and they must be in its order.
Checked CheckThread(decoder::TraceStreams& streams, Tid tid,
                    const std::vector<TrueInsn>& truth) {
  const auto stretches = StretchesOf(streams, tid);
  Checked checked{.gaps = stretches.size() - 1};
  size_t at = 0;
  for (const auto& stretch : stretches) {
    const size_t begin = at;
    while (at < truth.size() && !IsAt(stretch, truth, at)) {
      ++at;
    }
    if (stretch.empty()) {
      at = begin;
      continue;
    }
    if (at == truth.size()) {
      ADD_FAILURE() << fmt::format(
          "thread {}: {} instructions from {:#x} on were never executed", tid,
          stretch.size(), stretch.front().ip);
      return checked;
    }
    checked.from_start = checked.from_start && at == begin;
    at += stretch.size();
    checked.insns += stretch.size();
  }
  checked.to_the_end = at == truth.size();
  return checked;
}

class PerfRecordingTest : public testing::Test {
 protected:
  PerfRecordingTest() {
    std::string pattern = fs::temp_directory_path() / "clew-ptrec-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~PerfRecordingTest() override { fs::remove_all(folder_); }

  perf::PerfSessionOptions Options(const PtSysfs& sysfs, uint64_t aux_bytes,
                                   bool snapshot) const {
    perf::PerfSessionOptions options;
    options.sys = sysfs.root();
    options.snapshot = snapshot;
    options.data_bytes = 64 << 10;
    options.pt = perf::PtOptions{
        .buffer_bytes = aux_bytes, .snapshot = snapshot, .mtc_period = 6};
    return options;
  }

  struct Loaded {
    std::unique_ptr<decoder::PerfTrace> trace;
    std::unique_ptr<decoder::TraceStreams> streams;
  };
  Loaded Load(const Synthetic& synthetic) const {
    auto config = synthetic.Config();
    // As our encoder writes.
    config.branches_before_timing = true;
    config.tsc_at_switches = true;
    auto data = PerfData::Open(perf_data());
    EXPECT_TRUE(data) << data.error().message;
    auto trace = decoder::PerfTrace::Load(std::move(*data), config);
    EXPECT_TRUE(trace) << trace.error().message;
    auto streams = decoder::TraceStreams::Create(**trace, {});
    EXPECT_TRUE(streams) << streams.error().message;
    return {std::move(*trace), std::move(*streams)};
  }
  std::string perf_data() const { return folder_ + "/perf.data"; }

  std::string folder_;
};

#define ASSERT_OK(...)                                       \
  do {                                                       \
    const auto& clew_status = (__VA_ARGS__);                 \
    ASSERT_TRUE(clew_status) << clew_status.error().message; \
  } while (false)

TEST_F(PerfRecordingTest, FullTraceDecodesToEveryInstruction) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const bool cpu_wide = seed % 2 == 0;
    ToldRun run({.seed = seed, .insns = 20000}, cpu_wide, random);
    const PtSysfs sysfs(3);
    perf::PtKernel kernel;
    auto options = Options(sysfs, 8 << 10, false);
    if (!cpu_wide) {
      options.threads = {4000};
    }
    auto recording = PerfRecording::Open(kernel, options);
    ASSERT_OK(recording);
    auto capture = recording->NewCapture(PosixFileSystem(), perf_data());
    ASSERT_OK(capture);
    ASSERT_OK(recording->session().Enable());
    while (run.Tell(kernel, /*room=*/true)) {
      if (random.Below(3) == 0) {
        ASSERT_OK(recording->Drain(*capture));
      }
    }
    ASSERT_OK(recording->session().Disable());
    ASSERT_OK(recording->FinishFull(*capture));
    ASSERT_OK(recording->WriteFile(*capture, {"./program", "x"}));

    EXPECT_EQ(kernel.truncations(), 0u);
    EXPECT_EQ(capture->pt_bytes(), run.whole_bytes());
    EXPECT_EQ(capture->counts().lost_records, kernel.lost_records());
    ASSERT_EQ(kernel.lost_records(), 0u);
    const Loaded loaded = Load(run.synthetic());
    for (const auto& [tid, truth] : run.synthetic().truth) {
      const Checked checked = CheckThread(*loaded.streams, tid, truth);
      EXPECT_EQ(checked.insns, truth.size());
      EXPECT_EQ(checked.gaps, 0u);
    }
    // Each core's records are those that the kernel had, in its order; only the
    // event's id is of this recording.
    std::map<CoreId, std::vector<std::vector<std::byte>>> told, came;
    for (const KernelRecord& record : run.sideband()) {
      told[record.core].push_back(record.bytes);
      told[record.core].back().resize(record.bytes.size() - 8);
    }
    for (const KernelRecord& record : SidebandOf(perf_data())) {
      came[record.core].push_back(record.bytes);
      came[record.core].back().resize(record.bytes.size() - 8);
    }
    EXPECT_TRUE(told == came);
    const auto of_perf = decoder::BranchesOfPerf(perf_data());
    if (!of_perf && of_perf.error().code == ErrorCode::kUnsupported) {
      continue;
    }
    ASSERT_OK(of_perf);
    const auto of_original = decoder::BranchesOfPerf(run.synthetic().perf_path);
    ASSERT_OK(of_original);
    EXPECT_FALSE(of_perf->empty());
    EXPECT_TRUE(*of_perf == *of_original);
  }
}

TEST_F(PerfRecordingTest, AFullRingMakesAGapAndTheRestDecodes) {
  uint64_t truncations = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    decoder::SyntheticConfig config{.seed = seed, .insns = 150000};
    config.encoder.psb_period_bytes = 256;
    ToldRun run(config, /*cpu_wide=*/true, random);
    const PtSysfs sysfs(3);
    perf::PtKernel kernel;
    auto recording =
        PerfRecording::Open(kernel, Options(sysfs, 8 << 10, false));
    ASSERT_OK(recording);
    auto capture = recording->NewCapture(PosixFileSystem(), perf_data());
    ASSERT_OK(capture);
    ASSERT_OK(recording->session().Enable());
    while (run.Tell(kernel, /*room=*/false)) {
      if (random.Below(20) == 0) {
        ASSERT_OK(recording->Drain(*capture));
      }
    }
    ASSERT_OK(recording->session().Disable());
    ASSERT_OK(recording->FinishFull(*capture));
    ASSERT_OK(recording->WriteFile(*capture, {}));

    truncations += kernel.truncations();
    EXPECT_EQ(capture->counts().truncations, kernel.truncations());
    EXPECT_EQ(capture->pt_bytes() + run.untraced_bytes(), run.whole_bytes());
    const Loaded loaded = Load(run.synthetic());
    uint64_t holes = 0;
    for (const decoder::CoreTrace& core : loaded.trace->cores()) {
      for (const decoder::AuxPiece& piece : core.pieces) {
        holes += piece.hole.empty() ? 0 : 1;
      }
    }
    // One behind which nothing came any more is not a hole.
    EXPECT_LE(holes, kernel.truncations());
    EXPECT_GE(holes + 3, kernel.truncations());
    uint64_t insns = 0;
    for (const auto& [tid, truth] : run.synthetic().truth) {
      insns += CheckThread(*loaded.streams, tid, truth).insns;
    }
    EXPECT_GT(insns, 0u);
    EXPECT_GE(loaded.streams->stats().gaps, holes);
  }
  EXPECT_GT(truncations, 5u) << "the rings were never full";
}

TEST_F(PerfRecordingTest, ASnapshotHasTheEndOfTheRun) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    decoder::SyntheticConfig config{.seed = seed, .insns = 300000};
    config.encoder.psb_period_bytes = 256;
    ToldRun run(config, /*cpu_wide=*/true, random);
    const PtSysfs sysfs(3);
    perf::PtKernel kernel;
    auto options = Options(sysfs, 8 << 10, true);
    options.data_bytes = 512 << 10;  // the mapping must still be there
    auto recording = PerfRecording::Open(kernel, options);
    ASSERT_OK(recording);
    ASSERT_OK(recording->session().Enable());
    while (run.Tell(kernel, /*room=*/false)) {
    }
    auto capture = recording->NewCapture(PosixFileSystem(), perf_data());
    ASSERT_OK(capture);
    ASSERT_OK(recording->TakeSnapshot(*capture));
    ASSERT_OK(recording->WriteFile(*capture, {}));

    EXPECT_LT(capture->pt_bytes(), run.whole_bytes()) << "nothing overwritten";
    EXPECT_EQ(capture->pt_bytes(), 3u * (8 << 10));
    const Loaded loaded = Load(run.synthetic());
    EXPECT_TRUE(loaded.trace->pt_info().snapshot);
    uint64_t insns = 0;
    for (const auto& [tid, truth] : run.synthetic().truth) {
      const Checked checked = CheckThread(*loaded.streams, tid, truth);
      insns += checked.insns;
      EXPECT_TRUE(checked.insns == 0 || checked.to_the_end);
    }
    EXPECT_GT(insns, 1000u);
    EXPECT_TRUE(kernel.IsTracing(CoreId(0))) << "it goes on";
  }
}

TEST_F(PerfRecordingTest, WithoutTheTscAsClockPtIsRefused) {
  const PtSysfs sysfs(1);
  perf::PtKernel kernel;
  kernel.SetClockKnown(false);
  const auto recording =
      PerfRecording::Open(kernel, Options(sysfs, 8 << 10, false));
  ASSERT_FALSE(recording);
  EXPECT_EQ(recording.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(recording.error().message,
              testing::HasSubstr("cap_user_time_zero"));
}

TEST_F(PerfRecordingTest, ACoreThatComesAgainIsBehindAHole) {
  auto capture = PerfCapture::Create(PosixFileSystem(), perf_data());
  ASSERT_OK(capture);
  const std::vector<std::byte> bytes(100, std::byte{1});
  ASSERT_OK(
      capture->OnAux(CoreId(2), {.offset = 0, .first = bytes, .second = {}}));
  capture->RestartCore(CoreId(2));
  ASSERT_OK(
      capture->OnAux(CoreId(2), {.offset = 0, .first = bytes, .second = {}}));
  ASSERT_OK(
      capture->OnAux(CoreId(2), {.offset = 100, .first = bytes, .second = {}}));
  PtInfo info;
  info.pmu_type = 8;
  PerfFileHead head;
  head.pt_type = 8;
  head.events.push_back({.attr = {}, .name = "intel_pt//u", .ids = {1}});
  head.events.back().attr.type = 8;
  ASSERT_OK(capture->Finish(head, BuildPtInfo(info).bytes(), nullptr));
  auto data = PerfData::Open(perf_data());
  ASSERT_OK(data);
  const auto trace = decoder::PerfTrace::Load(std::move(*data), {});
  ASSERT_OK(trace);
  ASSERT_EQ((*trace)->cores().size(), 1u);
  const auto& pieces = (*trace)->cores()[0].pieces;
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].bytes.size(), 200u);
  EXPECT_GE(pieces[1].hole_bytes, 4096u - 8);
}

}  // namespace
}  // namespace clew::recorder
