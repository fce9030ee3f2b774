// Goal: what the code files have decides what is decoded, and nothing else:
// code of 32 bits is taken for that, a mapping that its file does not have is a
// gap for itself alone, and a file without the breakpoint that was in memory
// gives no instruction that did not run. Method: hand-made packets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "bundle/perf_data/perf_data_writer.h"
#include "common/os/file.h"
#include "decoder/streams.h"
#include "recorder/pt_encoder/packets.h"
#include "tests/decoder/code_base.h"

namespace clew::decoder {
namespace {

namespace fs = std::filesystem;
namespace packets = recorder::packets;
using bundle::MmapRecord;
using bundle::PerfData;
using bundle::PerfDataWriter;
using bundle::RecordOrigin;
using packets::IpPacket;

constexpr uint64_t kOther = 0x600000;
const RecordOrigin kOrigin = {
    .process = 7, .thread = Tid(7), .time = TscTicks(500), .core = CoreId(0)};

class CodeTest : public testing::Test {
 protected:
  CodeTest() {
    std::string pattern = fs::temp_directory_path() / "clew-code-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    auto writer =
        PerfDataWriter::Create(PosixFileSystem(), folder_ + "/perf.data", {});
    EXPECT_TRUE(writer) << writer.error().message;
    writer_ = std::make_unique<PerfDataWriter>(std::move(*writer));
    EXPECT_TRUE(writer_->AddComm(kOrigin, "code", true));
    EXPECT_TRUE(writer_->AddSwitchIn(kOrigin));
  }
  ~CodeTest() override { fs::remove_all(folder_); }

  void Map(uint64_t addr, std::span<const uint8_t> code,
           uint64_t file_offset = 0) {
    const std::string path = fmt::format("{}/code{:x}", folder_, addr);
    EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), path, std::as_bytes(code)));
    EXPECT_TRUE(writer_->AddMmap2(kOrigin, {.addr = TraceeAddr(addr),
                                            .size_bytes = code.size(),
                                            .file_offset = file_offset,
                                            .prot = 5,
                                            .path = path,
                                            .build_id = {std::byte{1}}}));
  }

  // PSB+ outside of user mode, for code of `bits`.
  void Psb(uint8_t bits) {
    pos_ = packets::PutPsb(pos_);
    pos_ = packets::PutTsc(pos_, 600);
    Mode(bits);
    pos_ = packets::PutPsbend(pos_);
    last_ip_ = 0;
  }
  void Mode(uint8_t bits) {
    *pos_++ = 0x99;
    *pos_++ = bits == 64 ? 1 : 2;
  }
  void Enter(uint64_t ip) { Ip(IpPacket::kTipPge, ip); }
  void Ip(IpPacket packet, uint64_t ip) {
    pos_ = packets::PutIp(pos_, packet, ip, last_ip_);
    last_ip_ = ip;
  }
  void Tnt(uint64_t taken, uint32_t count) {
    pos_ = packets::PutTnt(pos_, taken, count);
  }
  void Leave() { pos_ = packets::PutIpSuppressed(pos_, IpPacket::kTipPgd); }

  void Decode() {
    const std::string path = folder_ + "/pt";
    const auto pt = std::as_bytes(std::span(bytes_.data(), pos_));
    ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), path, pt));
    ASSERT_TRUE(writer_->AddAuxtrace(CoreId(0), path));
    ASSERT_TRUE(writer_->Finish());
    TraceConfig config;
    config.branches_before_timing = true;
    config.resolve_image = [](const MmapRecord& of) { return of.path; };
    auto trace =
        PerfTrace::Load(*PerfData::Open(folder_ + "/perf.data"), config);
    ASSERT_TRUE(trace) << trace.error().message;
    auto streams = TraceStreams::Create(**trace, {});
    ASSERT_TRUE(streams) << streams.error().message;
    while (true) {
      auto item = (*streams)->Next(Tid(7));
      ASSERT_TRUE(item) << item.error().message;
      const std::optional<StreamItem>& next = *item;
      if (!next) {
        break;
      }
      Take(**streams, *next);
    }
    EXPECT_EQ((*streams)->stats().instructions, insns_.size());
  }
  void Take(TraceStreams& streams, const StreamItem& item) {
    if (const auto* gap = std::get_if<Gap>(&item)) {
      gaps_.push_back(*gap);
      return;
    }
    const Status walked = streams.ForEachInstruction(
        std::get<StreamBlock>(item),
        [this](const WalkedInsn& insn) { insns_.push_back(insn.ip.as_int()); });
    EXPECT_TRUE(walked) << walked.error().message;
  }

  std::string folder_;
  std::unique_ptr<PerfDataWriter> writer_;
  std::array<uint8_t, 512> bytes_ = {};
  uint8_t* pos_ = bytes_.data();
  uint64_t last_ip_ = 0;
  std::vector<uint64_t> insns_;
  std::vector<Gap> gaps_;
};

// 0x40, 0x48: INC and DEC of 32-bit code, prefixes of 64-bit code.
constexpr std::array<uint8_t, 6> kCode32 = {0x40, 0x48, 0x75, 0xfc, 0xcd, 0x80};

TEST_F(CodeTest, CodeOf32BitsIsDecodedAsThat) {
  Map(kCodeBase, kCode32);
  Psb(32);
  Enter(kCodeBase);
  Tnt(2, 2);  // once more
  Leave();
  Decode();
  const std::vector<uint64_t> wanted = {
      kCodeBase,     kCodeBase + 1, kCodeBase + 2, kCodeBase,
      kCodeBase + 1, kCodeBase + 2, kCodeBase + 4};
  EXPECT_EQ(insns_, wanted);
  EXPECT_TRUE(gaps_.empty()) << gaps_.front().detail;
}

// As where a 64-bit program makes a far jump to 32-bit code.
TEST_F(CodeTest, TheModeMayChange) {
  Map(kCodeBase, kCode32);
  constexpr std::array<uint8_t, 3> kCode64 = {0x90, 0x0f, 0x05};
  Map(kOther, kCode64);
  Psb(64);
  Enter(kOther);
  Leave();
  Mode(32);
  Enter(kCodeBase);
  Tnt(0, 1);
  Leave();
  Decode();
  const std::vector<uint64_t> wanted = {kOther,        kOther + 1,
                                        kCodeBase,     kCodeBase + 1,
                                        kCodeBase + 2, kCodeBase + 4};
  EXPECT_EQ(insns_, wanted);
  EXPECT_TRUE(gaps_.empty()) << gaps_.front().detail;
}

// nop; syscall
constexpr std::array<uint8_t, 3> kCall = {0x90, 0x0f, 0x05};

TEST_F(CodeTest, AMappingBehindTheEndOfItsFileIsAGapForItselfAlone) {
  Map(kCodeBase, kCall);
  Map(kOther, kCall, 4096);
  Psb(64);
  for (const uint64_t ip : {kCodeBase, kOther, kCodeBase}) {
    if (ip == kCodeBase) {
      Psb(64);
    }
    Enter(ip);
    Leave();
  }
  Decode();
  EXPECT_THAT(insns_, testing::ElementsAre(kCodeBase, kCodeBase + 1, kCodeBase,
                                           kCodeBase + 1));
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].cause, GapCause::kCodeMissing);
  EXPECT_EQ(gaps_[0].ip, TraceeAddr(kOther));
  EXPECT_THAT(gaps_[0].detail, testing::HasSubstr("the file has 3 bytes"));
}

// An INT3 was at the nop: user mode ends there, but by the file there is a
// branch next.
TEST_F(CodeTest, ABreakpointThatTheFileLacksIsAGap) {
  constexpr std::array<uint8_t, 4> kConditional = {0x90, 0x90, 0x75, 0xfd};
  constexpr std::array<uint8_t, 3> kReturn = {0x90, 0x90, 0xc3};
  Map(kCodeBase, kConditional);
  Map(kOther, kReturn);
  Map(0x800000, kCall);
  for (const uint64_t ip : {kCodeBase, kOther}) {
    Psb(64);
    Enter(0x800000);
    Leave();
    Enter(ip);
    Leave();
  }
  Psb(64);
  Enter(0x800000);
  Leave();
  Decode();
  EXPECT_THAT(insns_, testing::ElementsAre(0x800000, 0x800001, 0x800000,
                                           0x800001, 0x800000, 0x800001));
  ASSERT_EQ(gaps_.size(), 2u);
  for (const Gap& gap : gaps_) {
    EXPECT_EQ(gap.cause, GapCause::kBadPacket);
    EXPECT_THAT(gap.detail, testing::HasSubstr("the code differs"));
  }
}

}  // namespace
}  // namespace clew::decoder
