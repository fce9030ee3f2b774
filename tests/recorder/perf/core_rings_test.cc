// Goal: with PT, a core's events are opened, mapped, stopped and started in the
// order that the kernel needs, trace that a full ring stopped goes on after a
// drain, and what AUX records tell becomes gaps; a call that fails, whichever
// it is, is an error and no crash.
// Method: a kernel of the test's own, which logs each call and maps plain
// memory; the test writes records and heads as the kernel would.
#include "recorder/perf/core_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace clew::recorder::perf {
namespace {

using testing::ElementsAre;

constexpr uint64_t kPage = 4096;

class LoggingKernel final : public PerfKernel {
 public:
  explicit LoggingKernel(int fail_at = -1) : left_(fail_at) {}

  Result<Fd> OpenEvent(const perf_event_attr& attr, int32_t, int) override {
    CLEW_RETURN_IF_ERROR(
        Log(attr.type == PERF_TYPE_SOFTWARE ? "open sideband" : "open pt"));
    return Fd(memfd_create("event", MFD_CLOEXEC));
  }
  Result<MappedMemory> Map(const Fd& event, uint64_t offset, size_t bytes,
                           bool writable) override {
    CLEW_RETURN_IF_ERROR(Log(std::string(offset == 0 ? "map data" : "map aux") +
                             (writable ? "" : " read-only")));
    (void)!ftruncate(event.get(), static_cast<off_t>(offset + bytes));
    void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       event.get(), static_cast<off_t>(offset));
    MappedMemory memory({static_cast<std::byte*>(begin), bytes});
    if (offset == 0) {
      auto* page = static_cast<perf_event_mmap_page*>(begin);
      page->data_offset = kPage;
      page->data_size = bytes - kPage;
      pages.push_back(page);
    } else {
      aux = static_cast<std::byte*>(begin);
    }
    return memory;
  }
  Status Control(const Fd&, unsigned long, unsigned long,
                 std::string_view what) override {
    return Log(std::string(what));
  }
  Result<Fd> MakePoller() override { return Fd(); }
  Status Watch(const Fd&, const Fd&) override { return {}; }
  Result<bool> Wait(const Fd&, int) override { return false; }
  Status WaitForWriters() override { return {}; }

  std::vector<std::string> log;
  std::vector<perf_event_mmap_page*> pages;  // of sideband, then of PT
  std::byte* aux = nullptr;

 private:
  Status Log(std::string what) {
    log.push_back(std::move(what));
    return left_-- == 0 ? SystemError(ENOMEM, "no") : Status();
  }
  int left_;
};

struct Sink final : SessionSink {
  Status OnEvent(CoreId, const RecordView&, const Event&) override {
    ++events;
    return {};
  }
  Status OnAux(CoreId, const AuxRingPiece& piece) override {
    aux_bytes += piece.size_bytes();
    return {};
  }
  void OnGap(CoreId core, const AuxGap& gap) override {
    EXPECT_EQ(core, CoreId(3));
    gaps.push_back(gap);
  }
  uint64_t events = 0;
  uint64_t aux_bytes = 0;
  std::vector<AuxGap> gaps;
};

CorePlan Plan(RingMode mode) {
  CorePlan plan{.threads = {-1},
                .pt = perf_event_attr{},
                .filter_text = "f",
                .data_bytes = 4096,
                .aux_bytes = 8192,
                .mode = mode};
  plan.sideband.type = PERF_TYPE_SOFTWARE;
  plan.pt->type = 8;
  return plan;
}

// As the kernel reports records of PT's own ring that found no room.
void PutLost(perf_event_mmap_page* page) {
  const uint64_t header = uint64_t{PERF_RECORD_LOST} | uint64_t{56} << 48;
  const std::array<uint64_t, 7> record = {header, 1, 1000, 0, 0, 3, 1};
  std::memcpy(reinterpret_cast<std::byte*>(page) + kPage + page->data_head,
              record.data(), sizeof(record));
  page->data_head += sizeof(record);
}

// An AUX record, as the kernel puts it into PT's data ring.
void PutAux(perf_event_mmap_page* page, uint64_t offset, uint64_t size,
            uint64_t flags) {
  const uint64_t header = uint64_t{PERF_RECORD_AUX} | uint64_t{64} << 48;
  const std::array<uint64_t, 8> record = {header, offset, size, flags,
                                          0,      0,      3,    1};
  std::memcpy(reinterpret_cast<std::byte*>(page) + kPage + page->data_head,
              record.data(), sizeof(record));
  page->data_head += sizeof(record);
  page->aux_head = offset + size;
}

TEST(CoreRingsTest, FullTraceGoesOnAfterATruncationAndTellsTheGap) {
  LoggingKernel kernel;
  const auto rings =
      CoreRings::Open(kernel, CoreId(3), Plan(RingMode::kForward));
  ASSERT_TRUE(rings) << rings.error().message;
  EXPECT_THAT(kernel.log,
              ElementsAre("open sideband", "map data", "open pt", "map data",
                          "map aux", "set the address filter of"));
  EXPECT_EQ(kernel.pages[1]->aux_size, 8192u);
  EXPECT_EQ(kernel.pages[1]->aux_offset % kPage, 0u);
  Sink sink;
  kernel.log.clear();
  PutAux(kernel.pages[1], 0, 100, 0);
  ASSERT_TRUE((*rings)->Drain(sink));
  EXPECT_TRUE(kernel.log.empty()) << "nothing was stopped";
  PutAux(kernel.pages[1], 100, 50, PERF_AUX_FLAG_TRUNCATED);
  ASSERT_TRUE((*rings)->Drain(sink));
  EXPECT_THAT(kernel.log, ElementsAre("enable"));
  ASSERT_TRUE((*rings)->Drain(sink));
  EXPECT_EQ(kernel.log.size(), 1u) << "enabled once";
  EXPECT_EQ(sink.aux_bytes, 150u);
  EXPECT_EQ(sink.events, 2u);
  ASSERT_EQ(sink.gaps.size(), 1u);
  EXPECT_EQ(sink.gaps[0].cause, AuxGapCause::kTruncated);
  EXPECT_EQ(sink.gaps[0].offset_bytes, 150u);
  // Bytes that no record announces.
  kernel.pages[1]->aux_head = 170;
  ASSERT_TRUE((*rings)->Drain(sink));
  ASSERT_TRUE((*rings)->Close(sink));
  ASSERT_EQ(sink.gaps.size(), 2u);
  EXPECT_EQ(sink.gaps[1].cause, AuxGapCause::kNoRecord);
  EXPECT_EQ(sink.gaps[1].size_bytes, 20u);
}

TEST(CoreRingsTest, SnapshotStopsPtBeforeTheSidebandAndOverwritesBoth) {
  LoggingKernel kernel;
  const auto rings =
      CoreRings::Open(kernel, CoreId(3), Plan(RingMode::kOverwrite));
  ASSERT_TRUE(rings) << rings.error().message;
  EXPECT_THAT(
      kernel.log,
      ElementsAre("open sideband", "map data read-only", "open pt", "map data",
                  "map aux read-only", "set the address filter of"));
  kernel.log.clear();
  Sink sink;
  ASSERT_TRUE((*rings)->StopOutput());
  std::memset(kernel.aux, 1, 300);
  PutAux(kernel.pages[1], 300, 0, PERF_AUX_FLAG_OVERWRITE);
  PutLost(kernel.pages[1]);
  ASSERT_TRUE((*rings)->ReadSnapshot(sink));
  ASSERT_TRUE((*rings)->ResumeOutput());
  EXPECT_THAT(kernel.log, ElementsAre("disable", "pause", "resume", "enable"));
  EXPECT_EQ(sink.aux_bytes, 300u);
  EXPECT_TRUE(sink.gaps.empty());
  EXPECT_EQ(sink.events, 0u);
  EXPECT_EQ((*rings)->counts().lost_records, 0u) << "of AUX records alone";
  EXPECT_TRUE((*rings)->Close(sink));
}

TEST(CoreRingsTest, EveryCallOfOpenMayFail) {
  for (int k = 0; k < 6; ++k) {
    LoggingKernel kernel(k);
    const auto rings =
        CoreRings::Open(kernel, CoreId(3), Plan(RingMode::kForward));
    ASSERT_FALSE(rings) << k;
    EXPECT_EQ(rings.error().sys_errno, ENOMEM);
    EXPECT_EQ(kernel.log.size(), static_cast<size_t>(k) + 1);
  }
}

}  // namespace
}  // namespace clew::recorder::perf
