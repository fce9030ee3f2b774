// Goal: the bundle reader gives back what a writer put in, refuses what breaks
// proto/bundle.proto with a place, and never crashes.
// Method: messages made here by protobuf; one fault at a time; then truncation
// and bit flips, seed printed.

#include "bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "bundle/convert_inputs.h"
#include "bundle/input_log.h"
#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/message.h"
#include "bundle/manifest/wire_fault.h"
#include "common/bytes.h"
#include "common/digest.h"
#include "tests/support/exact_bytes.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::BundleSource;
using bundle::FindWireFault;
using bundle::InputLog;
using bundle::ParseMessage;
using bundle::ToInput;
using bundle::ToManifest;
using bundle::ToStart;
using testing::HasSubstr;

pb::Manifest GoodManifest() {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_producer("test");
  manifest.set_source(pb::Manifest::SOURCE_QEMU);
  manifest.add_command("prog");
  manifest.mutable_timing()->set_time_mult(1);
  pb::Image* image = manifest.add_images();
  image->set_path("/usr/bin/prog");
  image->set_build_id("\x12\xab");
  image->set_has_build_id(true);
  return manifest;
}

pb::Start GoodStart() {
  pb::Start start;
  start.set_thread(7);
  for (uint64_t i = 0; i < 16; ++i) {
    start.add_gpr(100 + i);
  }
  start.set_rip(0x401000);
  for (const uint64_t addr : {0x2000u, 0x1000u}) {
    pb::Segment* segment = start.add_segments();
    segment->set_addr(addr);
    segment->set_size_bytes(4096);
    segment->set_prot(3);
    segment->set_data("abc");
  }
  return start;
}

pb::Input SyscallOf(int32_t thread, uint64_t number) {
  pb::Input input;
  input.set_thread(thread);
  pb::Syscall* call = input.mutable_syscall();
  call->set_number(number);
  for (uint64_t i = 0; i < 6; ++i) {
    call->add_args(i);
  }
  call->set_returned(true);
  call->set_result(-5);
  pb::Write* write = call->add_writes();
  write->set_addr(0x5000);
  write->set_data("xy");
  return input;
}

void AppendRecord(std::string& log, const pb::Input& input) {
  const std::string payload = input.SerializeAsString();
  uint64_t size = payload.size();
  for (; size >= 0x80; size >>= 7) {
    log.push_back(static_cast<char>(size | 0x80));
  }
  log.push_back(static_cast<char>(size));
  log += payload;
}

// A folder with a bundle, removed at the end.
class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "clew-bundle-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
    Write("manifest.pb", GoodManifest().SerializeAsString());
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), path_ + "/" + name,
                               AsBytes(content)));
  }
  // The message with which opening this manifest fails.
  std::string Refusal(const pb::Manifest& manifest, ErrorCode code) {
    Write("manifest.pb", manifest.SerializeAsString());
    const auto bundle = Bundle::Open(path_);
    if (bundle) {
      return "(opened)";
    }
    EXPECT_EQ(bundle.error().code, code);
    return bundle.error().message;
  }
  std::string path_;
};

TEST_F(BundleTest, ManifestAndImagesComeBack) {
  const auto bundle = Bundle::Open(path_ + "/");
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->manifest().source, BundleSource::kQemu);
  ASSERT_EQ(bundle->manifest().images.size(), 1u);
  EXPECT_EQ(bundle->ImageOf("/usr/bin/prog"), path_ + "/images/12ab/prog");
  EXPECT_EQ(bundle->ImageOf("/usr/bin/other"), "");
}

TEST_F(BundleTest, RefusesWhatManifestsMayNotSay) {
  auto manifest = GoodManifest();
  manifest.set_format_version(2);
  EXPECT_THAT(Refusal(manifest, ErrorCode::kUnsupported),
              HasSubstr("format_version is 2"));
  manifest.set_format_version(0);
  EXPECT_THAT(Refusal(manifest, ErrorCode::kCorruptInput),
              HasSubstr("format_version"));
  for (const char* path : {"", "/", "/usr/..", "..", "/a/."}) {
    manifest = GoodManifest();
    manifest.mutable_images(0)->set_path(path);
    EXPECT_THAT(Refusal(manifest, ErrorCode::kCorruptInput),
                HasSubstr("image path"));
  }
  manifest = GoodManifest();
  manifest.mutable_timing()->set_time_shift(64);
  EXPECT_THAT(Refusal(manifest, ErrorCode::kCorruptInput),
              HasSubstr("time_shift is 64"));
}

TEST_F(BundleTest, RefusesUnfinishedRecordingsAndOtherFolders) {
  EXPECT_EQ(Bundle::Open("x.clew.partial").error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(Bundle::Open(testing::TempDir()).error().message,
              HasSubstr("no bundle"));
}

TEST_F(BundleTest, ScheduleSurvivesTheRoundTrip) {
  const auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle);
  auto none = bundle->ReadSchedule();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  Schedule schedule;
  schedule.grade = WitnessGrade::kMemoryExact;
  schedule.engine = "search";
  schedule.memory_bytes_compared = 10;
  schedule.memory_bytes_equal = 9;
  schedule.final_memory_digest = 0xabcdef;
  schedule.steps = {
      {.thread = Tid(7), .until_insn = 5},
      {.kind = ScheduleStep::Kind::kFlush, .thread = Tid(8), .until_insn = 1},
      {.kind = ScheduleStep::Kind::kFlush,
       .queue = 16,
       .thread = Tid(8),
       .until_insn = 2}};
  schedule.model = MemoryModelKind::kPso;
  ASSERT_TRUE(bundle->WriteSchedule(PosixFileSystem(), schedule, {"a note"}));
  const auto read = bundle->ReadSchedule();
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(*read);
  const Schedule got = read->value_or(Schedule());
  EXPECT_EQ(got.steps, schedule.steps);
  EXPECT_EQ(got.model, schedule.model);
  EXPECT_EQ(got.grade, schedule.grade);
  EXPECT_EQ(got.engine, schedule.engine);
  EXPECT_EQ(got.final_memory_digest, schedule.final_memory_digest);
  pb::Schedule written;
  ASSERT_TRUE(bundle::ReadMessage(path_ + "/schedule.pb", written));
  EXPECT_THAT(written.notes(), testing::ElementsAre("a note"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/schedule.pb.partial"));
}

TEST_F(BundleTest, AScheduleThatNamesNoMemoryModelIsSequentiallyConsistent) {
  pb::Schedule message;
  message.add_steps()->set_thread(1);
  const auto schedule = bundle::ToSchedule(message, "schedule.pb");
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->model, MemoryModelKind::kSc);
  EXPECT_EQ(schedule->steps.front().queue, ScheduleStep::kAllQueues);
}

TEST_F(BundleTest, RefusesAScheduleWithAnUnknownModelOrQueue) {
  pb::Schedule message;
  message.add_steps()->set_queue(17);
  EXPECT_THAT(bundle::ToSchedule(message, "schedule.pb").error().message,
              HasSubstr("queue is 17"));
  message.mutable_steps(0)->set_queue(1);
  message.set_memory_model(static_cast<pb::Schedule::MemoryModel>(3));
  EXPECT_THAT(bundle::ToSchedule(message, "schedule.pb").error().message,
              HasSubstr("memory_model is 3"));
}

TEST_F(BundleTest, RefusesTheScheduleOfAnotherRecording) {
  ASSERT_TRUE(
      Bundle::Open(path_)->WriteSchedule(PosixFileSystem(), Schedule{}, {}));
  auto other = GoodManifest();
  other.set_seed(99);
  Write("manifest.pb", other.SerializeAsString());
  const auto schedule = Bundle::Open(path_)->ReadSchedule();
  ASSERT_FALSE(schedule);
  EXPECT_THAT(schedule.error().message, HasSubstr("manifest_digest"));
}

TEST(InputLogTest, EachThreadGetsItsOwnInOrder) {
  std::string log;
  AppendRecord(log, SyscallOf(7, 1));
  AppendRecord(log, SyscallOf(8, 2));
  AppendRecord(log, SyscallOf(7, 3));
  const auto inputs = InputLog::Over(AsBytes(log), "inputs");
  ASSERT_TRUE(inputs) << inputs.error().message;
  const auto number = [&](Tid tid) -> uint64_t {
    const auto next = (*inputs)->Next(tid);
    EXPECT_TRUE(next) << next.error().message;
    return *next ? std::get<SyscallInput>(**next).number : 0;
  };
  EXPECT_EQ(number(Tid(7)), 1u);
  EXPECT_EQ(number(Tid(7)), 3u);
  EXPECT_EQ(number(Tid(7)), 0u);
  EXPECT_EQ(number(Tid(8)), 2u);
  EXPECT_EQ(number(Tid(9)), 0u);
}

pb::Input UnknownOf(uint64_t count, bool with_call) {
  pb::Input input;
  input.set_thread(7);
  input.mutable_unknown()->set_count(count);
  input.mutable_unknown()->set_cause("the ring was full");
  if (with_call) {
    *input.mutable_unknown()->mutable_call() = SyscallOf(7, 45).syscall();
  }
  return input;
}

TEST(InputLogTest, WhatIsUnknownSaysHowMuchAndWhy) {
  for (const bool with_call : {false, true}) {
    const auto input = ToInput(UnknownOf(1, with_call), "inputs");
    ASSERT_TRUE(input) << input.error().message;
    const auto& unknown = std::get<UnknownInput>(*input);
    EXPECT_EQ(unknown.count, 1u);
    EXPECT_EQ(unknown.cause, "the ring was full");
    EXPECT_EQ(unknown.call_number,
              with_call ? std::optional<uint64_t>(45) : std::nullopt);
  }
  EXPECT_THAT(ToInput(UnknownOf(0, false), "i").error().message,
              HasSubstr("count is 0, wanted at least 1"));
  EXPECT_THAT(ToInput(UnknownOf(2, true), "i").error().message,
              HasSubstr("count is 2, wanted 1"));
  pb::Input bad = UnknownOf(1, true);
  bad.mutable_unknown()->mutable_call()->add_args(9);
  EXPECT_THAT(ToInput(bad, "i").error().message, HasSubstr("has 7 args"));
}

// Bundles older than the fields have neither.
TEST(InputLogTest, WhatACallReadsAndWhoSentASignalMayBeAbsent) {
  pb::Input call = SyscallOf(7, 1);
  const auto digest = [&] {
    return std::get<SyscallInput>(*ToInput(call, "i")).read_digest;
  };
  EXPECT_EQ(digest(), std::nullopt);
  call.mutable_syscall()->set_read_digest(UINT64_MAX);
  EXPECT_EQ(digest(), UINT64_MAX);
  pb::Input signal;
  signal.set_thread(7);
  signal.mutable_signal()->set_number(10);
  const auto sent_to = [&] {
    return std::get<SignalInput>(*ToInput(signal, "i")).sent_to;
  };
  EXPECT_EQ(sent_to(), SentTo::kUnknown);
  signal.mutable_signal()->set_sent_to(pb::Signal::SENT_TO_THREAD);
  EXPECT_EQ(sent_to(), SentTo::kThread);
  signal.mutable_signal()->set_sent_to(pb::Signal::SENT_TO_PROCESS);
  EXPECT_EQ(sent_to(), SentTo::kProcess);
  signal.mutable_signal()->set_sent_to(static_cast<pb::Signal::SentTo>(9));
  EXPECT_EQ(sent_to(), SentTo::kUnknown) << "of a later version";
}

TEST(InputLogTest, FaultsHaveAnOffset) {
  auto input = SyscallOf(7, 1);
  input.mutable_syscall()->add_args(9);
  std::string log;
  AppendRecord(log, SyscallOf(7, 1));
  const size_t second = log.size();
  AppendRecord(log, input);
  const auto inputs = InputLog::Over(AsBytes(log), "inputs");
  ASSERT_TRUE(inputs);
  ASSERT_TRUE((*inputs)->Next(Tid(7)));
  const auto bad = (*inputs)->Next(Tid(7));
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message,
              HasSubstr(fmt::format("inputs: offset {:#x}", second)));
  log += "\xff\xff\xff\xff\x7f";
  EXPECT_THAT(InputLog::Over(AsBytes(log), "inputs").error().message,
              HasSubstr("record length is"));
}

// --- where a message breaks

std::string FaultOf(const std::string& bytes,
                    const google::protobuf::Message& type) {
  const auto fault = FindWireFault(AsBytes(bytes), *type.GetDescriptor());
  return fault ? fmt::format("{:#x}: {}", fault->offset, fault->message) : "";
}

TEST(WireFaultTest, NamesThePlaceAndTheField) {
  const pb::Manifest manifest;
  EXPECT_EQ(FaultOf("", manifest), "");
  EXPECT_EQ(FaultOf("\x08\x01\x12\x05"
                    "ab",
                    manifest),
            "0x2: Manifest.producer: length is 5, only 2 bytes are left");
  EXPECT_EQ(FaultOf("\x12\x02"
                    "a\xff",
                    manifest),
            "0x3: Manifest.producer: byte is 0xff, wanted UTF-8");
  EXPECT_EQ(FaultOf("\x22\x02\x10\xff", manifest),
            "0x2: Cpu.family: its varint is cut or has over 10 bytes");
  EXPECT_EQ(FaultOf("\x08\x01\x0e", manifest),
            "0x2: Manifest: field number is 1 and wire type 6, wanted a number "
            "above 0 and type 0, 1, 2 or 5");
  EXPECT_EQ(FaultOf("\xf9\x7f\x01\x02", manifest),
            "0x0: Manifest.(field 2047): needs 8 bytes, only 2 are left");
}

// A byte that is decisive for the format, or any.
char FormatByte(Random& random) {
  constexpr std::string_view kBytes =
      "\x01\x02\x08\x0a\x12\x1b\x1c\x22\x52\x7f\x80\xc2\xed\xf4\xff";
  return random.Below(4) == 0 ? static_cast<char>(random.Below(256))
                              : kBytes[random.Below(kBytes.size())];
}

// Messages that protobuf wrote, cut, flipped and overwritten, and bytes that
// were never a message. Oracle: protobuf's parser.
TEST(WireFaultTest, AgreesWithProtobufOnWhatIsAMessage) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  pb::Manifest full = GoodManifest();
  full.set_working_directory("/h\u00f6me/\u4e2d/\U0001f600");
  full.mutable_cpu()->set_model(300);
  full.mutable_failure()->set_ip(UINT64_MAX);
  const std::vector<std::string> good = {full.SerializeAsString(),
                                         GoodStart().SerializeAsString(),
                                         SyscallOf(7, 1).SerializeAsString()};
  std::array<int, 2> seen = {};
  for (int i = 0; i < 60'000; ++i) {
    std::string bytes = good[random.Below(good.size())];
    if (random.Below(4) == 0) {
      bytes.resize(random.Below(bytes.size() + 1));
    }
    for (uint64_t change = random.Below(4); change > 0 && !bytes.empty();
         --change) {
      char& byte = bytes[random.Below(bytes.size())];
      byte = random.Below(2) == 0
                 ? static_cast<char>(byte ^ 1 << random.Below(8))
                 : FormatByte(random);
    }
    pb::Manifest manifest;
    pb::Start start;
    pb::Input input;
    for (google::protobuf::Message* message :
         std::array<google::protobuf::Message*, 3>{&manifest, &start, &input}) {
      const bool parses = ParseMessage(AsBytes(bytes), *message);
      const std::string fault = FaultOf(bytes, *message);
      ASSERT_EQ(parses, fault.empty())
          << fault << ": " << message->GetTypeName() << ": "
          << testing::PrintToString(bytes);
      ++seen[parses ? 1 : 0];
    }
  }
  EXPECT_GT(seen[0], 1000);
  EXPECT_GT(seen[1], 1000);
}

TEST_F(BundleTest, ABrokenMessageIsLocatedInItsFile) {
  Write("manifest.pb", GoodManifest().SerializeAsString() + "\x12\x05");
  const auto bundle = Bundle::Open(path_);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(bundle.error().message,
            fmt::format("{}/manifest.pb: offset {:#x}: Manifest.producer: "
                        "length is 5, only 0 bytes are left",
                        path_, GoodManifest().ByteSizeLong()));
}

TEST(InputLogTest, ABrokenRecordIsLocatedInTheFile) {
  std::string log;
  AppendRecord(log, SyscallOf(7, 1));
  const size_t second = log.size();
  log += std::string("\x03\x12\x7f\x00", 4);
  EXPECT_EQ(InputLog::Over(AsBytes(log), "inputs").error().message,
            fmt::format("inputs: offset {:#x}: Input.syscall: length is 127, "
                        "only 1 bytes are left",
                        second + 1));
}

TEST_F(BundleTest, AScheduleWithoutStepsIsRefused) {
  const auto bundle = Bundle::Open(path_);
  ASSERT_TRUE(bundle);
  ASSERT_TRUE(bundle->WriteSchedule(PosixFileSystem(), Schedule{}, {}));
  const auto schedule = bundle->ReadSchedule();
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(schedule.error().message,
              HasSubstr("schedule.pb: steps is empty, wanted at least one"));
}

// Every file of messages, damaged.
TEST(HostileBundleTest, DamagedFilesAreReadOrRefused) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::string log;
  for (int i = 0; i < 20; ++i) {
    AppendRecord(log, SyscallOf(7 + i % 3, 1));
  }
  const std::vector<std::string> files = {GoodManifest().SerializeAsString(),
                                          GoodStart().SerializeAsString(), log};
  uint64_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string file = files[static_cast<size_t>(i) % files.size()];
    if (random.Below(4) == 0) {
      file.resize(random.Below(file.size()));
    } else {
      file[random.Below(file.size())] ^=
          static_cast<char>(1u << random.Below(8));
    }
    const auto bytes = ExactBytes(file);
    pb::Manifest manifest;
    pb::Start start;
    if (ParseMessage(bytes, manifest)) {
      refused += ToManifest(manifest, "m", "b") ? 0 : 1;
    }
    if (ParseMessage(bytes, start)) {
      refused += ToStart(start, "s") ? 0 : 1;
    }
    const auto inputs = InputLog::Over(bytes, "i");
    if (inputs) {
      for (const Tid tid : (*inputs)->threads()) {
        auto next = (*inputs)->Next(tid);
        while (next && *next) {
          next = (*inputs)->Next(tid);
        }
        refused += next ? 0 : 1;
      }
    }
  }
  EXPECT_GT(refused, 2250u);
}

}  // namespace
}  // namespace clew::decoder
