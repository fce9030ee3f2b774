// Goal: what the plugin writes and the recorder reads back is the same: inputs
// in protobuf's wire format, the session, the outcome, and events; and the scan
// of instructions finds those that access shared memory.
// Method: round trips, the generated code as the reader; instruction bytes from
// an assembler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "common/os/file.h"
#include "common/os/scratch_folder.h"
#include "proto/bundle.pb.h"
#include "recorder/qemu/code_list.h"
#include "recorder/qemu/input_writer.h"
#include "recorder/qemu/insn_effects.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/software/raw_events.h"

namespace clew::recorder {
namespace {

TEST(InputWriterTest, GeneratedCodeReadsARecordedCall) {
  constexpr uint64_t kAddr = 0x10000000;
  void* const wanted = reinterpret_cast<void*>(kAddr);
  void* page = mmap(wanted, kPageBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, "abcdef", 6);
  const auto memory = GuestMemory::Open();
  const ScratchFolder folder = *ScratchFolder::Make("clew-format");
  const std::string path = folder.path() + "/inputs";
  InputWriter writer(Tid(42), *RawFile::Create(path), *memory);
  SyscallInput call;
  call.number = 300;
  call.args = {1, 0, UINT64_MAX, 4, 5, 6};
  call.result = -11;
  call.output_digest = 77;
  call.output_bytes = 5;
  call.read_digest = UINT64_MAX;
  writer.Add(call, {{kAddr, 6}, {0x20000, 3}});
  ASSERT_TRUE(writer.file().Close().has_value());
  EXPECT_EQ(writer.unreadable_bytes(), 3u) << "nothing is mapped at 0x20000";

  const auto bytes = *ReadWholeFile(path);
  ASSERT_LT(bytes.size(), 128u) << "one byte of length";
  EXPECT_EQ(static_cast<size_t>(bytes[0]), bytes.size() - 1);
  pb::Input input;
  ASSERT_TRUE(input.ParseFromArray(bytes.data() + 1,
                                   static_cast<int>(bytes.size()) - 1));
  EXPECT_EQ(input.thread(), 42);
  const pb::Syscall& read = input.syscall();
  EXPECT_EQ(read.number(), 300u);
  EXPECT_THAT(read.args(), testing::ElementsAre(1, 0, UINT64_MAX, 4, 5, 6));
  EXPECT_TRUE(read.returned());
  EXPECT_EQ(read.result(), -11);
  ASSERT_EQ(read.writes_size(), 2);
  EXPECT_EQ(read.writes(0).addr(), kAddr);
  EXPECT_EQ(read.writes(0).data(), "abcdef");
  EXPECT_EQ(read.writes(1).data(), std::string(3, '\0'));
  EXPECT_TRUE(read.has_output());
  EXPECT_EQ(read.output_digest(), 77u);
  EXPECT_EQ(read.output_bytes(), 5u);
  EXPECT_EQ(read.read_digest(), UINT64_MAX);
  munmap(page, kPageBytes);
}

TEST(CodeListTest, HasEachInstructionOnceWithItsFirstPlace) {
  const ScratchFolder folder = *ScratchFolder::Make("clew-format");
  const std::string path = folder.path() + "/code-list";
  const std::array<uint8_t, 3> first = {0x0f, 0x00, 0xc0};
  const std::array<uint8_t, 1> second = {0x90};
  CodeListWriter writer(*RawFile::Create(path));
  writer.Add(0x401000, first);
  writer.Add(0x401003, second);
  writer.Add(0x500000, first);
  // Longer by zeros: another one. And the longest that there are.
  const std::array<uint8_t, 2> longer = {0x90, 0x00};
  std::array<uint8_t, 15> longest = {0x66, 0x66, 0x66};
  writer.Add(0x401004, longer);
  writer.Add(0x401006, longest);
  longest.back() = 1;
  writer.Add(UINT64_MAX, longest);
  writer.Add(0x600000, longest);
  ASSERT_TRUE(writer.file().Close().has_value());
  const auto list = ReadCodeList(path);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->size(), 5u);
  EXPECT_EQ((*list)[2].bytes.size(), 2u);
  EXPECT_EQ((*list)[4].ip, TraceeAddr(UINT64_MAX));
  EXPECT_TRUE(
      std::ranges::equal((*list)[4].bytes, std::as_bytes(std::span(longest))));
  EXPECT_EQ((*list)[0].ip, TraceeAddr(0x401000));
  EXPECT_EQ((*list)[0].bytes.size(), 3u);
  EXPECT_EQ((*list)[0].bytes[2], std::byte{0xc0});
  EXPECT_EQ((*list)[1].bytes.size(), 1u);
  for (const char* bad : {"401000", "401000 0", "x 90", "401000 9g"}) {
    std::ofstream(path) << bad << "\n";
    EXPECT_FALSE(ReadCodeList(path).has_value()) << bad;
  }
}

TEST(PluginConfigTest, SurvivesTheRoundTrip) {
  PluginConfig config;
  config.folder = "/tmp/a b=c";
  config.scheduler = {.cores = 3, .quantum_insns = 9, .seed = UINT64_MAX};
  config.encoder.mtc = false;
  config.encoder.mtc_period = 3;
  config.timeout_s = 17;
  config.size_limit_bytes = uint64_t{5} << 32;
  config.core_on_exit = false;
  config.strict = true;
  config.fail_on = {.rule = FailOn::Rule::kDiffers, .status = 7};
  const std::string text = FormatPluginConfig(config);
  const auto parsed = ParsePluginConfig(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(FormatPluginConfig(*parsed), text);
  EXPECT_EQ(parsed->folder, config.folder);
  EXPECT_EQ(parsed->scheduler.seed, UINT64_MAX);
  EXPECT_FALSE(parsed->encoder.mtc);
  EXPECT_TRUE(parsed->strict);
  EXPECT_EQ(parsed->size_limit_bytes, uint64_t{5} << 32);
  EXPECT_TRUE(parsed->fail_on.Matches(0, false));
  EXPECT_FALSE(parsed->fail_on.Matches(7, false));
  EXPECT_FALSE(ParsePluginConfig("folder=x\ncores=y\n").has_value());
}

TEST(OutcomeTest, ATruncatedOneIsRefused) {
  Outcome outcome;
  outcome.failure.kind = FailureKind::kSignal;
  outcome.failure.ip = TraceeAddr(0x1234);
  outcome.refusal = "two\nlines";
  outcome.dropped = "too\nlarge";
  outcome.ring = {.halves = 1, .stopped_us = 2, .stopped_us_max = 3};
  outcome.unlogged_inputs = {"a = b", "c\nd"};
  outcome.deviations = {"e: f", "g"};
  const std::string text = FormatOutcome(outcome);
  const auto parsed = ParseOutcome(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->failure.ip, outcome.failure.ip);
  EXPECT_EQ(parsed->refusal, "two lines");
  EXPECT_EQ(parsed->dropped, "too large");
  EXPECT_EQ(parsed->ring, outcome.ring);
  EXPECT_EQ(parsed->unlogged_inputs,
            (std::vector<std::string>{"a = b", "c d"}));
  EXPECT_EQ(parsed->deviations, outcome.deviations);
  for (size_t i = 0; i + 2 < text.size(); ++i) {
    EXPECT_FALSE(ParseOutcome(text.substr(0, i)).has_value()) << i;
  }
}

TEST(RawEventTest, PathsMayHoldBlanksAndBadLinesAreRefused) {
  const auto event = ParseRawEvent("mmap 1 2 3 4 5 6 7 /tmp/a b");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->size_bytes, 5u);
  EXPECT_EQ(event->text, "/tmp/a b");
  const auto escaped = ParseRawEvent("mmap 1 2 3 4 5 6 7 /a\\nb\\\\c");
  ASSERT_TRUE(escaped.has_value());
  EXPECT_EQ(escaped->text, "/a\nb\\c");
  for (const char* bad : {"", "out 1 2", "out 1 2 3 x", "what 1 2 3"}) {
    EXPECT_FALSE(ParseRawEvent(bad).has_value()) << bad;
  }
}

TEST(InsnEffectsTest, FindsAccessesOtherThanToTheStack) {
  const std::vector<std::pair<std::vector<uint8_t>, bool>> kCases = {
      {{0x8b, 0x00}, true},                          // mov eax, [rax]
      {{0x8b, 0xc1}, false},                         // mov eax, ecx
      {{0x8b, 0x44, 0x24, 0x08}, false},             // mov eax, [rsp + 8]
      {{0x41, 0x8b, 0x04, 0x24}, true},              // mov eax, [r12]
      {{0x48, 0x8d, 0x05, 0, 0, 0, 0}, false},       // lea rax, [rip]
      {{0x0f, 0x1f, 0x40, 0x00}, false},             // nop [rax]
      {{0xf0, 0x0f, 0xb1, 0x0a}, true},              // lock cmpxchg [rdx], ecx
      {{0x66, 0x0f, 0x6f, 0x07}, true},              // movdqa xmm0, [rdi]
      {{0x66, 0x0f, 0x3a, 0x63, 0xc1, 0}, false},    // pcmpistri xmm0, xmm1
      {{0xf3, 0x48, 0xa5}, true},                    // rep movsq
      {{0x55}, false},                               // push rbp
      {{0xc3}, false},                               // ret
      {{0xff, 0x20}, true},                          // jmp [rax]
      {{0xe8, 0, 0, 0, 0}, false},                   // call
      {{0xc7, 0x05, 0, 0, 0, 0, 0, 0, 0, 0}, true},  // mov [rip], imm32
      {{0xc5, 0xf5, 0xfe, 0x00}, true},              // vpaddd ymm0, ymm1, [rax]
      {{0xc5, 0xf5, 0xfe, 0xc0}, false},             // vpaddd ymm0, ymm1, ymm0
      {{0xc5, 0xf8, 0x77}, false},                   // vzeroupper
      {{0xc5, 0xf8, 0x10, 0x04, 0x24}, false},       // vmovups xmm0, [rsp]
      {{0xc4, 0xc1, 0x78, 0x10, 0x04, 0x24}, true},  // vmovups xmm0, [r12]
      {{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x00}, true},  // vmovups zmm0, [rax]
      {{}, true},                                    // cut off
      {{0x8b}, true},
      {{0xc5, 0xf8}, true},
  };
  for (const auto& [bytes, accesses] : kCases) {
    EXPECT_EQ(AccessesSharedMemory(bytes), accesses)
        << testing::PrintToString(bytes);
  }
}

TEST(InsnEffectsTest, DeviantsAreKnownByTheirOpcodes) {
  using V = std::vector<uint8_t>;
  EXPECT_EQ(ClassifyDeviant(V{0x0f, 0xae, 0x54, 0x24, 0x1c}),
            DeviantInsn::kLoadMxcsr);
  EXPECT_EQ(ClassifyDeviant(V{0x41, 0x0f, 0xae, 0x10}),
            DeviantInsn::kLoadMxcsr);
  EXPECT_EQ(ClassifyDeviant(V{0x0f, 0xae, 0x18}), DeviantInsn::kNone)
      << "stmxcsr";
  EXPECT_EQ(ClassifyDeviant(V{0xf3, 0x0f, 0xae, 0xd0}), DeviantInsn::kNone)
      << "wrfsbase";
  EXPECT_EQ(ClassifyDeviant(V{0xdf, 0xe0}), DeviantInsn::kStoreX87Status);
  EXPECT_EQ(ClassifyDeviant(V{0x9b, 0xdd, 0x38}), DeviantInsn::kNone)
      << "wait, and then the instruction";
  EXPECT_EQ(ClassifyDeviant(V{0xdd, 0x38}), DeviantInsn::kStoreX87Status);
  EXPECT_EQ(ClassifyDeviant(V{0xdd, 0xf8}), DeviantInsn::kNone) << "reserved";
  EXPECT_EQ(ClassifyDeviant(V{0xdd, 0x30}), DeviantInsn::kNone) << "fnsave";
  EXPECT_EQ(ClassifyDeviant(V{0xdf, 0xe1}), DeviantInsn::kNone);
}

}  // namespace
}  // namespace clew::recorder
