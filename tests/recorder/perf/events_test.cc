// Goal: each of our record types becomes what perf_event.h says, and a record
// cut short anywhere, or with fields that cannot be, is an error that says
// where, never a read behind its end. Files have the same records:
// ParseKernelRecord reads both.
// Method: one record of each type, written field by field; then each of them
// with every shorter body.
#include "recorder/perf/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace clew::recorder::perf {
namespace {

using bundle::AuxRecord;
using bundle::CommRecord;
using bundle::ItraceStartRecord;
using bundle::LostRecord;
using bundle::MmapView;
using bundle::SwitchRecord;
using bundle::TaskRecord;
using testing::HasSubstr;

// A record, field by field; Finish adds the sample_id and sets the size.
class Builder {
 public:
  Builder(uint32_t type, uint16_t misc) : type_(type), misc_(misc) {
    bytes_.resize(sizeof(perf_event_header));
  }
  template <class T>
  Builder& Put(T value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(T));
    return *this;
  }
  Builder& Text(std::string text) {
    text.resize((text.size() / 8 + 1) * 8);
    for (const char c : text) {
      Put(c);
    }
    return *this;
  }
  std::vector<std::byte> Finish(size_t cut_bytes = 0) const {
    Builder whole = *this;
    whole.bytes_.resize(bytes_.size() - cut_bytes);
    whole.Put<int32_t>(11).Put<int32_t>(12).Put<uint64_t>(13);
    whole.Put<uint32_t>(14).Put<uint32_t>(0).Put<uint64_t>(15);
    return whole.bytes_;
  }
  Result<Event> Parse(const std::vector<std::byte>& bytes) const {
    return ParseEvent(
        {.position = 0x40, .type = type_, .misc = misc_, .bytes = bytes},
        "core 3");
  }
  size_t body_bytes() const {
    return bytes_.size() - sizeof(perf_event_header);
  }

 private:
  uint32_t type_;
  uint16_t misc_;
  std::vector<std::byte> bytes_;
};

Builder Mmap2(uint8_t build_id_bytes) {
  Builder record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
  record.Put<int32_t>(1).Put<int32_t>(2).Put<uint64_t>(0x1000);
  record.Put<uint64_t>(0x2000).Put<uint64_t>(0x3000);
  record.Put(build_id_bytes).Put<uint8_t>(0).Put<uint16_t>(0);
  for (uint8_t i = 0; i < 20; ++i) {
    record.Put(i);
  }
  return record.Put<uint32_t>(5).Put<uint32_t>(2).Text("/bin/true");
}

Builder Task(uint32_t type) {
  Builder record(type, 0);
  record.Put<int32_t>(1).Put<int32_t>(2).Put<int32_t>(3).Put<int32_t>(4);
  return record.Put<uint64_t>(5);
}

TEST(EventsTest, SampleIdAndAux) {
  Builder record(PERF_RECORD_AUX, 0);
  record.Put<uint64_t>(1).Put<uint64_t>(2).Put<uint64_t>(3);
  const auto bytes = record.Finish();
  const auto event = record.Parse(bytes);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->id.process, 11);
  EXPECT_EQ(event->id.thread, Tid(12));
  EXPECT_EQ(event->id.time, PerfNanos(13));
  EXPECT_EQ(event->id.core, CoreId(14));
  EXPECT_EQ(event->id.event_id, 15u);
  const auto& aux = std::get<AuxRecord>(event->body);
  EXPECT_EQ(aux.offset_bytes, 1u);
  EXPECT_EQ(aux.size_bytes, 2u);
  EXPECT_EQ(aux.flags, 3u);
  EXPECT_TRUE(aux.truncated());
}

TEST(EventsTest, LostOfBothKinds) {
  Builder lost(PERF_RECORD_LOST, 0);
  lost.Put<uint64_t>(7).Put<uint64_t>(8);
  const auto lost_bytes = lost.Finish();
  const auto event = std::get<LostRecord>(lost.Parse(lost_bytes)->body);
  EXPECT_EQ(event.count, 8u);
  EXPECT_FALSE(event.samples);
  Builder samples(PERF_RECORD_LOST_SAMPLES, 0);
  samples.Put<uint64_t>(9);
  const auto bytes = samples.Finish();
  const auto dropped = std::get<LostRecord>(samples.Parse(bytes)->body);
  EXPECT_EQ(dropped.count, 9u);
  EXPECT_TRUE(dropped.samples);
}

TEST(EventsTest, ItraceStartAndSwitches) {
  Builder start(PERF_RECORD_ITRACE_START, 0);
  start.Put<int32_t>(5).Put<int32_t>(6);
  const auto bytes = start.Finish();
  const auto event = std::get<ItraceStartRecord>(start.Parse(bytes)->body);
  EXPECT_EQ(event.pid, 5);
  EXPECT_EQ(event.tid, Tid(6));
  Builder in(PERF_RECORD_SWITCH, 0);
  const auto in_bytes = in.Finish();
  EXPECT_FALSE(std::get<SwitchRecord>(in.Parse(in_bytes)->body).out);
  Builder out(
      PERF_RECORD_SWITCH_CPU_WIDE,
      PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  out.Put<int32_t>(5).Put<int32_t>(6);
  const auto out_bytes = out.Finish();
  const auto out_event = std::get<SwitchRecord>(out.Parse(out_bytes)->body);
  EXPECT_TRUE(out_event.out);
}

TEST(EventsTest, CommForkAndExit) {
  Builder comm(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  comm.Put<int32_t>(1).Put<int32_t>(2).Text("bank");
  const auto comm_bytes = comm.Finish();
  const auto named = std::get<CommRecord>(comm.Parse(comm_bytes)->body);
  EXPECT_EQ(named.name, "bank");
  EXPECT_TRUE(named.exec);
  for (const uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    const Builder task = Task(type);
    const auto bytes = task.Finish();
    const auto event = std::get<TaskRecord>(task.Parse(bytes)->body);
    EXPECT_EQ(event.exited, type == PERF_RECORD_EXIT);
    EXPECT_EQ(event.pid, 1);
    EXPECT_EQ(event.parent_pid, 2);
    EXPECT_EQ(event.tid, Tid(3));
    EXPECT_EQ(event.parent_tid, Tid(4));
  }
}

TEST(EventsTest, Mmap2WithBuildId) {
  const Builder record = Mmap2(20);
  const auto bytes = record.Finish();
  const auto event = std::get<MmapView>(record.Parse(bytes)->body);
  EXPECT_EQ(event.addr, TraceeAddr(0x1000));
  EXPECT_EQ(event.size_bytes, 0x2000u);
  EXPECT_EQ(event.file_offset, 0x3000u);
  ASSERT_EQ(event.build_id.size(), 20u);
  EXPECT_EQ(event.build_id[19], std::byte{19});
  EXPECT_TRUE(event.executable);
  EXPECT_EQ(event.path, "/bin/true");
}

TEST(EventsTest, MappingsWithoutBuildId) {
  Builder mmap2(PERF_RECORD_MMAP2, 0);
  mmap2.Put<int32_t>(1).Put<int32_t>(2).Put<uint64_t>(0x1000);
  mmap2.Put<uint64_t>(0x2000).Put<uint64_t>(0x3000);
  mmap2.Put<uint64_t>(7).Put<uint64_t>(8).Put<uint64_t>(9);
  mmap2.Put<uint32_t>(3).Put<uint32_t>(2).Text("/data");
  const auto bytes = mmap2.Finish();
  const auto event = std::get<MmapView>(mmap2.Parse(bytes)->body);
  EXPECT_TRUE(event.build_id.empty());
  EXPECT_FALSE(event.executable);
  EXPECT_EQ(event.path, "/data");
  for (const uint16_t misc :
       {uint16_t{0}, uint16_t{PERF_RECORD_MISC_MMAP_DATA}}) {
    Builder mmap(PERF_RECORD_MMAP, misc);
    mmap.Put<int32_t>(1).Put<int32_t>(2).Put<uint64_t>(0x1000);
    mmap.Put<uint64_t>(0x2000).Put<uint64_t>(0x3000).Text("/lib");
    const auto old_bytes = mmap.Finish();
    const auto old = std::get<MmapView>(mmap.Parse(old_bytes)->body);
    EXPECT_EQ(old.executable, misc == 0);
    EXPECT_EQ(old.file_offset, 0x3000u);
    EXPECT_EQ(old.path, "/lib");
  }
}

TEST(EventsTest, WhatCannotBeIsRefusedWithItsField) {
  const Builder too_long = Mmap2(21);
  EXPECT_EQ(too_long.Parse(too_long.Finish()).error().message,
            "core 3: data ring: position 0x40: MMAP2 record: offset 0x29: "
            "mmap2 build_id_size is 21, wanted at most 20");
  Builder endless(PERF_RECORD_COMM, 0);
  endless.Put<int32_t>(1).Put<int32_t>(2).Put<uint64_t>(UINT64_MAX);
  EXPECT_EQ(endless.Parse(endless.Finish()).error().message,
            "core 3: data ring: position 0x40: COMM record: offset 0x18: comm "
            "has 8 bytes and no NUL, wanted one");
  Builder mmap(PERF_RECORD_MMAP, 0);
  mmap.Put<int32_t>(1).Put<int32_t>(2).Put<uint64_t>(UINT64_MAX);
  mmap.Put<uint64_t>(1).Put<uint64_t>(0).Text("");
  EXPECT_EQ(mmap.Parse(mmap.Finish()).error().message,
            "core 3: data ring: position 0x40: MMAP record: offset 0x28: mmap "
            "at 0xffffffffffffffff with len 0x1 wraps around");
  Builder aux(PERF_RECORD_AUX, 0);
  aux.Put<uint64_t>(UINT64_MAX).Put<uint64_t>(1).Put<uint64_t>(0);
  EXPECT_EQ(aux.Parse(aux.Finish()).error().message,
            "core 3: data ring: position 0x40: AUX record: offset 0x20: "
            "aux_offset 0xffffffffffffffff with aux_size 0x1 wraps around");
}

TEST(EventsTest, EveryShorterBodyIsRefusedWithItsPlace) {
  Builder aux(PERF_RECORD_AUX, 0);
  aux.Put<uint64_t>(1).Put<uint64_t>(2).Put<uint64_t>(3);
  // The text's padding may go, its NUL may not: "/bin/true" has 7 to spare.
  const struct {
    Builder record;
    size_t spare;
  } cases[] = {{aux, 0}, {Task(PERF_RECORD_FORK), 0}, {Mmap2(20), 6}};
  for (const auto& [record, spare] : cases) {
    for (size_t cut = spare + 1; cut <= record.body_bytes(); ++cut) {
      const auto bytes = record.Finish(cut);
      const auto event = record.Parse(bytes);
      ASSERT_FALSE(event) << cut;
      EXPECT_EQ(event.error().code, ErrorCode::kCorruptInput);
      EXPECT_THAT(event.error().message,
                  HasSubstr("core 3: data ring: position 0x40: "));
    }
    const auto bytes = record.Finish(spare);
    EXPECT_TRUE(record.Parse(bytes));
  }
  EXPECT_EQ(aux.Parse(aux.Finish(4)).error().message,
            "core 3: data ring: position 0x40: AUX record: offset 0x18: aux "
            "flags needs 8 bytes, only 4 left");
  EXPECT_EQ(aux.Parse(std::vector<std::byte>(39)).error().message,
            "core 3: data ring: position 0x40: AUX record: offset 0x8: record "
            "body has 31 bytes, its sample id needs 32");
}

TEST(EventsTest, UnknownTypesHaveTheirSampleIdAlone) {
  Builder record(77, 0);
  record.Put<uint64_t>(1);
  const auto bytes = record.Finish();
  const auto event = record.Parse(bytes);
  ASSERT_TRUE(event);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(event->body));
  EXPECT_EQ(event->id.event_id, 15u);
}

}  // namespace
}  // namespace clew::recorder::perf
