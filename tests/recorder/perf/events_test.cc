// Goal: each of our record types becomes the event that perf_event.h says, and
// a record cut short anywhere is an error that says where, never a read behind
// its end.
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
  const auto& aux = std::get<AuxEvent>(event->body);
  EXPECT_EQ(aux.offset_bytes, 1u);
  EXPECT_EQ(aux.size_bytes, 2u);
  EXPECT_EQ(aux.flags, 3u);
}

TEST(EventsTest, LostOfBothKinds) {
  Builder lost(PERF_RECORD_LOST, 0);
  lost.Put<uint64_t>(7).Put<uint64_t>(8);
  const auto lost_bytes = lost.Finish();
  const auto event = std::get<LostEvent>(lost.Parse(lost_bytes)->body);
  EXPECT_EQ(event.event_id, 7u);
  EXPECT_EQ(event.count, 8u);
  Builder samples(PERF_RECORD_LOST_SAMPLES, 0);
  samples.Put<uint64_t>(9);
  const auto bytes = samples.Finish();
  EXPECT_EQ(std::get<LostSamplesEvent>(samples.Parse(bytes)->body).count, 9u);
}

TEST(EventsTest, ItraceStartAndSwitches) {
  Builder start(PERF_RECORD_ITRACE_START, 0);
  start.Put<int32_t>(5).Put<int32_t>(6);
  const auto bytes = start.Finish();
  const auto event = std::get<ItraceStartEvent>(start.Parse(bytes)->body);
  EXPECT_EQ(event.process, 5);
  EXPECT_EQ(event.thread, Tid(6));
  Builder in(PERF_RECORD_SWITCH, 0);
  const auto in_bytes = in.Finish();
  EXPECT_FALSE(std::get<SwitchEvent>(in.Parse(in_bytes)->body).out);
  Builder out(
      PERF_RECORD_SWITCH_CPU_WIDE,
      PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  out.Put<int32_t>(5).Put<int32_t>(6);
  const auto out_bytes = out.Finish();
  const auto out_event = std::get<SwitchEvent>(out.Parse(out_bytes)->body);
  EXPECT_TRUE(out_event.out);
  EXPECT_TRUE(out_event.preempted);
}

TEST(EventsTest, CommForkAndExit) {
  Builder comm(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  comm.Put<int32_t>(1).Put<int32_t>(2).Text("bank");
  const auto comm_bytes = comm.Finish();
  const auto named = std::get<CommEvent>(comm.Parse(comm_bytes)->body);
  EXPECT_EQ(named.name, "bank");
  EXPECT_TRUE(named.exec);
  for (const uint32_t type : {PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
    const Builder task = Task(type);
    const auto bytes = task.Finish();
    const auto event = std::get<TaskEvent>(task.Parse(bytes)->body);
    EXPECT_EQ(event.exit, type == PERF_RECORD_EXIT);
    EXPECT_EQ(event.process, 1);
    EXPECT_EQ(event.parent_process, 2);
    EXPECT_EQ(event.thread, Tid(3));
    EXPECT_EQ(event.parent_thread, Tid(4));
  }
}

TEST(EventsTest, Mmap2WithBuildId) {
  const Builder record = Mmap2(20);
  const auto bytes = record.Finish();
  const auto event = std::get<MmapEvent>(record.Parse(bytes)->body);
  EXPECT_EQ(event.addr, TraceeAddr(0x1000));
  EXPECT_EQ(event.size_bytes, 0x2000u);
  EXPECT_EQ(event.file_offset, 0x3000u);
  ASSERT_EQ(event.build_id.size(), 20u);
  EXPECT_EQ(event.build_id[19], std::byte{19});
  EXPECT_EQ(event.prot, 5u);
  EXPECT_EQ(event.path, "/bin/true");
  const Builder too_long = Mmap2(21);
  EXPECT_FALSE(too_long.Parse(too_long.Finish()));
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
      EXPECT_THAT(event.error().message,
                  HasSubstr("core 3: data ring: position 0x40"));
    }
    const auto bytes = record.Finish(spare);
    EXPECT_TRUE(record.Parse(bytes));
  }
  EXPECT_FALSE(aux.Parse(std::vector<std::byte>(39)));
}

TEST(EventsTest, UnknownTypesKeepTheirNumber) {
  Builder record(77, 0);
  const auto bytes = record.Finish();
  EXPECT_EQ(std::get<OtherEvent>(record.Parse(bytes)->body).type, 77u);
}

}  // namespace
}  // namespace clew::recorder::perf
