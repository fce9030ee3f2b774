// Goal: in a recording of `perf record --per-thread`, which has a PT stream for
// each thread and none for cores, every thread has its own instructions, in
// file and in pipe form; what is lost of one thread is a gap of that thread
// alone. Method: two threads at the same time, traced with our encoder, in a
// perf.data laid out as perf does; differential against perf where it is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "bundle/perf_data/file_format.h"
#include "bundle/perf_data/pt_stream.h"
#include "bundle/perf_data/record_builder.h"
#include "common/os/file.h"
#include "decoder/streams.h"
#include "recorder/perf/event_config.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "tests/decoder/code_base.h"
#include "tests/decoder/perf_script.h"

namespace clew::decoder {
namespace {

namespace fs = std::filesystem;

using bundle::BuildFeatures;
using bundle::BuildHead;
using bundle::BuildPtInfo;
using bundle::BuildTimeConv;
using bundle::CommBody;
using bundle::IsStreamOfThread;
using bundle::MmapBody;
using bundle::MmapRecord;
using bundle::PerfData;
using bundle::PerfFileEvent;
using bundle::PerfFileHead;
using bundle::StreamName;
using bundle::TscConversion;
using recorder::CoreEncoder;
using recorder::EnableCause;

constexpr int32_t kProcess = 70;
constexpr uint32_t kPtType = 8;
constexpr uint32_t kAnyCore = UINT32_MAX;
// nop; jnz to the nop; syscall; jmp to the nop.
constexpr std::array<uint8_t, 7> kCode = {0x90, 0x75, 0xfd, 0x0f,
                                          0x05, 0xeb, 0xf9};

enum class Form : uint8_t { kFile, kPipe };

// One traced thread.
struct TestThread {
  TestThread(Tid of, const recorder::EncoderConfig& config)
      : tid(of), encoder(config, sink) {}

  void Run(uint64_t loops, uint64_t& now) {
    const auto ran = [&](uint64_t offset) {
      now += 3;
      encoder.AdvanceTime(TscTicks(now));
      truth.emplace_back(kCodeBase + offset);
    };
    const bool first = truth.empty();
    now += 10;
    encoder.AdvanceTime(TscTicks(now));
    encoder.Enable(TraceeAddr(kCodeBase + (first ? 0 : 5)),
                   first ? EnableCause::kSwitchIn : EnableCause::kKernelReturn);
    if (!first) {
      ran(5);
    }
    for (uint64_t loop = 0; loop <= loops; ++loop) {
      ran(0);
      ran(1);
      encoder.Conditional(loop < loops,
                          TraceeAddr(kCodeBase + (loop < loops ? 0 : 3)));
    }
    ran(3);
    encoder.FarTransfer();
  }

  uint64_t EventId(uint64_t event) const {
    return 1 + 2 * static_cast<uint64_t>(tid.as_int()) + event;
  }

  Tid tid;
  recorder::VectorSink sink;
  CoreEncoder encoder;
  std::vector<TraceeAddr> truth;
};

class PerThreadTest : public testing::TestWithParam<Form> {
 protected:
  PerThreadTest() {
    std::string pattern = fs::temp_directory_path() / "clew-thread-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), code_path(),
                               std::as_bytes(std::span(kCode))));
    for (int round = 0; round < 40; ++round) {
      one_.Run(1 + static_cast<uint64_t>(round % 7), now_);
      two_.Run(11, now_);
    }
    one_.encoder.Flush();
    two_.encoder.Flush();
  }
  ~PerThreadTest() override { fs::remove_all(folder_); }

  std::string perf_data() const { return folder_ + "/perf.data"; }
  std::string code_path() const { return folder_ + "/code"; }

  // A record of the kernel's. Without the core, which perf does not ask for
  // where events are of threads.
  void Put(uint32_t type, uint16_t misc, const ByteBuilder& body, Tid tid,
           uint64_t time, uint64_t id) {
    const size_t bytes = sizeof(perf_event_header) + body.size() + 24;
    records_.Put(type).Put(misc).Put(static_cast<uint16_t>(bytes));
    records_.PutBytes(body.bytes());
    records_.Put(kProcess).Put(tid.as_int()).Put(time).Put(id);
  }

  // perf's own.
  void PutOwn(uint32_t type, const ByteBuilder& body) {
    records_.Put(type).Put(uint16_t{0});
    records_.Put(
        static_cast<uint16_t>(sizeof(perf_event_header) + body.size()));
    records_.PutBytes(body.bytes());
  }

  void PutFirst() {
    constexpr size_t kPerCpuMmaps = 8 + 8 + 9 * 8;  // of AUXTRACE_INFO
    const ByteBuilder info =
        BuildPtInfo({.pmu_type = kPtType,
                     .clock = TscConversion(),
                     .tsc_bit = 1u << 10,
                     .no_return_compression_bit = 1u << 11,
                     .have_sched_switch = 0,
                     .mtc_bit = 1u << 9,
                     .mtc_period_bits = 0xfu << 14,
                     .tsc_ctc_numerator = config_.tsc_ctc_numerator,
                     .tsc_ctc_denominator = 1,
                     .cyc_bit = 1u << 1,
                     .max_nonturbo_ratio = config_.tsc_bus_ratio,
                     .filter = {}});
    records_.PutBytes(info.bytes().first(kPerCpuMmaps)).Put(uint64_t{0});
    records_.PutBytes(info.bytes().subspan(kPerCpuMmaps + 8));
    ByteBuilder index;
    index.Put(uint64_t{4});
    for (uint64_t event : {0, 1}) {
      for (const TestThread* thread : {&one_, &two_}) {
        index.Put(thread->EventId(event)).Put(uint64_t{thread == &two_});
        index.Put(int64_t{-1}).Put(int64_t{thread->tid.as_int()});
      }
    }
    PutOwn(69, index);
    PutOwn(79, BodyOf(BuildTimeConv(TscConversion())));
  }
  static ByteBuilder BodyOf(const ByteBuilder& record) {
    ByteBuilder body;
    body.PutBytes(record.bytes().subspan(sizeof(perf_event_header)));
    return body;
  }

  void PutSideband(uint64_t cut_off) {
    for (const TestThread* thread : {&one_, &two_}) {
      Put(PERF_RECORD_COMM, 0, CommBody({kProcess, thread->tid}, "twins"),
          thread->tid, 0, one_.EventId(1));
    }
    auto mapping =
        MmapBody({kProcess, one_.tid}, {.addr = TraceeAddr(kCodeBase),
                                        .size_bytes = kCode.size(),
                                        .prot = 5,
                                        .path = code_path(),
                                        .build_id = {}});
    EXPECT_TRUE(mapping);
    Put(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, *mapping, one_.tid, 0,
        one_.EventId(1));
    for (const TestThread* thread : {&one_, &two_}) {
      ByteBuilder start;
      start.Put(kProcess).Put(thread->tid.as_int());
      Put(PERF_RECORD_ITRACE_START, 0, start, thread->tid, 900,
          thread->EventId(0));
      const bool cut = cut_off != 0 && thread == &two_;
      ByteBuilder aux;
      aux.Put(uint64_t{0});
      aux.Put(cut ? cut_off : uint64_t{thread->sink.bytes().size()});
      aux.Put(uint64_t{cut ? 1u : 0u});
      // As of a thread that is gone: the event tells.
      Put(PERF_RECORD_AUX, 0, aux, Tid(-1), now_, thread->EventId(0));
    }
  }

  void PutPt(const TestThread& thread, std::vector<uint64_t>& offsets,
             uint64_t records_at) {
    const auto pt = std::as_bytes(std::span(thread.sink.bytes()));
    const uint64_t padded = (pt.size() + 7) & ~uint64_t{7};
    offsets.push_back(records_at + records_.size());
    ByteBuilder body;
    body.Put(padded).Put(uint64_t{0}).Put(now_);
    body.Put(uint32_t{&thread == &two_}).Put(thread.tid.as_int());
    body.Put(kAnyCore).Put(uint32_t{0});
    PutOwn(71, body);
    records_.PutBytes(pt).PutZeros(padded - pt.size());
  }

  PerfFileHead Head() const {
    perf_event_attr pt = bundle::BaseAttr();
    pt.sample_type &= ~uint64_t{PERF_SAMPLE_CPU};
    pt.type = kPtType;
    pt.config = recorder::PerfConfigBits(config_);
    pt.exclude_kernel = 1;
    perf_event_attr dummy = bundle::SidebandRecordsAttr();
    dummy.sample_type &= ~uint64_t{PERF_SAMPLE_CPU};
    return {.events = {{pt, "intel_pt//u", {one_.EventId(0), two_.EventId(0)}},
                       {dummy, "dummy:u", {one_.EventId(1), two_.EventId(1)}}},
            .host_name = "host",
            .os_release = "6.1.0",
            .version = "6.1",
            .cpu_description = "cpu",
            .cpu_id = "GenuineIntel,6,158,10",
            .command = {"perf"},
            .pt_type = kPtType};
  }

  // ATTR records stand for a pipe's header; features for a file's end.
  void PutAttrs(const PerfFileHead& head) {
    for (PerfFileEvent event : head.events) {
      event.attr.size = PERF_ATTR_SIZE_VER7;
      ByteBuilder body;
      body.PutBytes(
          std::as_bytes(std::span(&event.attr, 1)).first(PERF_ATTR_SIZE_VER7));
      for (const uint64_t id : event.ids) {
        body.Put(id);
      }
      PutOwn(64, body);
    }
  }

  // `cut_off`: PT of the second thread was lost behind so many bytes.
  void Write(uint64_t cut_off = 0) {
    const PerfFileHead head = Head();
    const bool pipe = GetParam() == Form::kPipe;
    if (pipe) {
      PutAttrs(head);
    }
    PutFirst();
    PutSideband(cut_off);
    std::vector<uint64_t> offsets;
    const uint64_t at = BuildHead(head, 0).size();
    PutPt(one_, offsets, at);
    PutPt(two_, offsets, at);
    ByteBuilder file;
    if (pipe) {
      file.PutBytes(std::as_bytes(std::span(std::string_view("PERFILE2"))));
      file.Put(uint64_t{16});
    } else {
      file.PutBytes(BuildHead(head, records_.size()).bytes());
    }
    file.PutBytes(records_.bytes());
    if (!pipe) {
      file.PutBytes(BuildFeatures(head, file.size(), offsets).bytes());
    }
    EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), perf_data(), file.bytes()));
  }

  void Load() {
    TraceConfig config;
    config.resolve_image = [](const MmapRecord& mapping) {
      return mapping.path;
    };
    auto data = PerfData::Open(perf_data());
    ASSERT_TRUE(data) << data.error().message;
    auto trace = PerfTrace::Load(std::move(*data), config);
    ASSERT_TRUE(trace) << trace.error().message;
    trace_ = std::move(*trace);
    auto streams = TraceStreams::Create(*trace_, {});
    ASSERT_TRUE(streams) << streams.error().message;
    streams_ = std::move(*streams);
  }

  // What was decoded of a thread; its gaps go to `gaps_`.
  std::vector<TraceeAddr> Pull(Tid tid) {
    std::vector<TraceeAddr> insns;
    gaps_.clear();
    while (true) {
      auto item = streams_->Next(tid);
      if (!item) {
        ADD_FAILURE() << item.error().message;
        return insns;
      }
      const std::optional<StreamItem>& next = *item;
      if (!next) {
        return insns;
      }
      if (const auto* gap = std::get_if<Gap>(&*next)) {
        gaps_.push_back(*gap);
        continue;
      }
      EXPECT_TRUE(streams_->ForEachInstruction(
          std::get<StreamBlock>(*next),
          [&](const WalkedInsn& insn) { insns.push_back(insn.ip); }));
    }
  }

  recorder::EncoderConfig config_;
  std::string folder_;
  uint64_t now_ = 1000;
  TestThread one_{Tid(71), config_};
  TestThread two_{Tid(72), config_};
  ByteBuilder records_;
  std::unique_ptr<PerfTrace> trace_;
  std::unique_ptr<TraceStreams> streams_;
  std::vector<Gap> gaps_;
};

TEST_P(PerThreadTest, EachThreadHasItsOwnInstructions) {
  Write();
  Load();
  EXPECT_THAT(streams_->threads(),
              testing::UnorderedElementsAre(one_.tid, two_.tid));
  for (const TestThread* thread : {&one_, &two_}) {
    EXPECT_EQ(Pull(thread->tid), thread->truth);
    EXPECT_TRUE(gaps_.empty()) << gaps_.front().detail;
  }
  EXPECT_EQ(streams_->stats().instructions_without_thread, 0u);
}

TEST_P(PerThreadTest, AStreamIsNamedByItsThread) {
  Write();
  Load();
  ASSERT_EQ(trace_->cores().size(), 2u);
  for (const Slice& slice : trace_->slices()) {
    EXPECT_TRUE(IsStreamOfThread(slice.core));
    EXPECT_EQ(StreamName(slice.core), fmt::format("thread {}", slice.thread));
    EXPECT_EQ(slice.process, kProcess);
  }
}

TEST_P(PerThreadTest, WhatOneThreadLostIsItsGapAlone) {
  Write(two_.sink.bytes().size() - 40);
  Load();
  EXPECT_EQ(Pull(one_.tid), one_.truth);
  EXPECT_TRUE(gaps_.empty()) << gaps_.front().detail;
  EXPECT_LT(Pull(two_.tid).size(), two_.truth.size());
  ASSERT_FALSE(gaps_.empty());
  EXPECT_THAT(gaps_.back().detail, testing::HasSubstr("no PSB"));
}

TEST_P(PerThreadTest, BranchesEqualPerfs) {
  if (GetParam() == Form::kPipe) {
    GTEST_SKIP() << "perf does not answer for PT in pipe form";
  }
  Write();
  Load();
  auto theirs = BranchesOfPerf(perf_data());
  if (!theirs && theirs.error().code == ErrorCode::kUnsupported) {
    GTEST_SKIP() << theirs.error().message;
  }
  ASSERT_TRUE(theirs) << theirs.error().message;
  auto ours = BranchesOfStreams(*streams_);
  ASSERT_TRUE(ours) << ours.error().message;
  ForgetOpenEnds(*theirs, *ours);
  EXPECT_EQ(*ours, *theirs);
}

INSTANTIATE_TEST_SUITE_P(Forms, PerThreadTest,
                         testing::Values(Form::kFile, Form::kPipe),
                         [](const auto& form) {
                           return form.param == Form::kFile ? "File" : "Pipe";
                         });

TEST(PerThreadRecordTest, NeitherCoreNorThreadIsAnError) {
  for (const auto& [cpu, tid] : {std::pair(-1, 0), std::pair(-2, 7)}) {
    ByteBuilder body;
    body.PutZeros(24).Put(uint32_t{0}).Put(int32_t{tid}).Put(int32_t{cpu});
    ByteReader reader(body.bytes(), "perf.data");
    uint64_t size = 0;
    const auto auxtrace = bundle::ParseAuxtrace(reader, size);
    ASSERT_FALSE(auxtrace);
    EXPECT_THAT(auxtrace.error().message, testing::HasSubstr("auxtrace cpu"));
  }
}

}  // namespace
}  // namespace clew::decoder
