// Goal: a bundle whose evidence contradicts itself (one recorded branch flipped
// in a copy) is answered unsat, and the answer names the branch's thread; no
// flipped bundle crashes the solver. Nothing of these recordings is lost, so it
// is the model that differs, never the program.
// Method: property over a recorded bundle: flips of the newest branch of TNT
// packets, spread over each core's trace (printed), kept where the copy still
// decodes without a gap. Oracle: the original was solved; the rest of the
// flipped path is that of the original.
#include <asm/unistd_64.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "bundle/bundle.h"
#include "common/os/file.h"
#include "common/result.h"
#include "decoder/bundle_trace.h"
#include "decoder/pt/packet.h"
#include "decoder/streams.h"
#include "proto/bundle.pb.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using bundle::Bundle;

constexpr size_t kFlipsTriedMax = 400;
constexpr size_t kFlipsSolvedMax = 6;

// Where a bit of perf.data stands for a branch.
struct BranchBit {
  size_t file_offset = 0;
  std::byte mask{};
};

std::optional<BranchBit> NewestBranch(const decoder::Packet& packet,
                                      size_t base) {
  if (packet.type != decoder::PacketType::kTnt) {
    return std::nullopt;
  }
  const bool is_short = packet.size == 1;
  return BranchBit{base + packet.offset + (is_short ? 0 : 2),
                   is_short ? std::byte{2} : std::byte{1}};
}

// The newest branch of every TNT packet of the bundle.
std::vector<BranchBit> FindBranches(const std::string& bundle_path) {
  std::vector<BranchBit> branches;
  auto bundle = Bundle::Open(bundle_path);
  auto trace = decoder::ReadTrace(*bundle);
  const auto file = ReadWholeFile(bundle->perf_data_path());
  for (const decoder::CoreTrace& core : (*trace)->cores()) {
    for (const decoder::AuxPiece& piece : core.pieces) {
      const auto found = std::search(file->begin(), file->end(),
                                     piece.bytes.begin(), piece.bytes.end());
      const auto base = static_cast<size_t>(found - file->begin());
      decoder::PacketReader reader(piece.bytes);
      decoder::Packet packet;
      reader.SyncAt(0);
      while (reader.Next(packet)) {
        if (const auto branch = NewestBranch(packet, base)) {
          branches.push_back(*branch);
        }
      }
    }
  }
  return branches;
}

void Flip(const std::string& perf_data, const BranchBit& branch) {
  auto bytes = ReadWholeFile(perf_data);
  ASSERT_TRUE(bytes);
  (*bytes)[branch.file_offset] ^= branch.mask;
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), perf_data, *bytes));
}

// Every thread's stream, to its end, without a gap.
bool DecodesWhole(const std::string& bundle_path) {
  const auto bundle = Bundle::Open(bundle_path);
  const auto trace = decoder::ReadTrace(*bundle);
  if (!trace) {
    return false;
  }
  auto streams = decoder::TraceStreams::Create(**trace, {});
  if (!streams) {
    return false;
  }
  for (const Tid thread : (*streams)->threads()) {
    while (true) {
      const auto item = (*streams)->Next(thread);
      if (!item || (*item && std::holds_alternative<Gap>(**item))) {
        return false;
      }
      if (!*item) {
        break;
      }
    }
  }
  return true;
}

TEST(ContradictionTest, AFlippedBranchIsUnsatAndNamed) {
  const Scratch scratch;
  const std::string original = scratch.Path("original.clew");
  Clew({"record", "--until-fail", "50", "-o", original, "--", Tracee("order")});
  ASSERT_EQ(ClewAtLeisure("solve", {original}).exit_status, 0);
  std::filesystem::remove(original + "/schedule.pb");
  const std::vector<BranchBit> branches = FindBranches(original);
  ASSERT_GT(branches.size(), 100u);

  size_t solved = 0;
  size_t unsat = 0;
  const size_t stride = std::max<size_t>(1, branches.size() / kFlipsTriedMax);
  for (size_t i = 0; i < branches.size() && solved < kFlipsSolvedMax;
       i += stride) {
    const std::string copy = scratch.Path("flipped.clew");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(original, copy,
                          std::filesystem::copy_options::recursive);
    Flip(copy + "/perf.data", branches[i]);
    if (!DecodesWhole(copy)) {
      continue;
    }
    ++solved;
    const ProgramOutput answer = ClewAtLeisure("solve", {copy});
    SCOPED_TRACE(
        fmt::format("branch {} of {}\n{}", i, branches.size(), answer.text));
    EXPECT_TRUE(answer.exit_status == kExitBug ||
                answer.exit_status == kExitLimit);
    if (answer.exit_status == kExitBug) {
      ++unsat;
      EXPECT_NE(answer.text.find("clew's model of the kernel or the CPU "
                                 "differs from what was recorded"),
                std::string::npos);
      EXPECT_NE(answer.text.find("in conflict"), std::string::npos);
      EXPECT_NE(answer.text.find("thread "), std::string::npos);
    }
  }
  fmt::print("{} flipped bundles decoded whole, {} answered unsat\n", solved,
             unsat);
  EXPECT_GE(unsat, 3u);
}

// The file of inputs.pb with the first result of `call` that is no error
// replaced.
void ReplaceResult(const std::string& inputs_path, uint64_t call,
                   int64_t result) {
  const auto file = ReadWholeFile(inputs_path);
  ASSERT_TRUE(file);
  google::protobuf::io::ArrayInputStream from(file->data(),
                                              static_cast<int>(file->size()));
  std::string written;
  google::protobuf::io::StringOutputStream to(&written);
  pb::Input input;
  bool replaced = false;
  bool at_end = false;
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&input, &from,
                                                                  &at_end)) {
    if (!replaced && input.has_syscall() && input.syscall().number() == call &&
        input.syscall().result() >= 0) {
      replaced = true;
      input.mutable_syscall()->set_result(result);
    }
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(input, &to);
    input.Clear();
  }
  ASSERT_TRUE(at_end && replaced);
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), inputs_path,
                             std::as_bytes(std::span(written))));
}

constexpr const char* kWordOfTheProgram = "four-rings-and-a-secret";

// Of a program of one thread: the loader was told that its first library is not
// there, and was recorded to go on with it. Nothing that one thread alone can
// have done. The secret is in the program's environment and command line.
void RecordFalseResult(const std::string& bundle) {
  const ProgramOutput recorded =
      Run({"env", std::string("CLEW_TEST_WORD=") + kWordOfTheProgram, Binary(),
           "record", "-o", bundle, "--", Tracee("fpstate"), kWordOfTheProgram});
  ASSERT_EQ(recorded.exit_status, 0) << recorded.text;
  ReplaceResult(bundle + "/inputs.pb", __NR_openat, -ENOENT);
}

TEST(ContradictionTest, AFalseResultOfOneThreadIsTheModelsAndNamed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  ASSERT_NO_FATAL_FAILURE(RecordFalseResult(bundle));
  const ProgramOutput text = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(text.exit_status, kExitBug) << text.text;
  EXPECT_THAT(text.text,
              testing::ContainsRegex(
                  "clew's model of the kernel or the CPU differs from what was "
                  "recorded: after `openat`, at .*ld-linux.*, thread [0-9]+, "
                  "instruction [0-9]+: "));
  EXPECT_EQ(text.text.find("no interleaving"), std::string::npos) << text.text;

  const ProgramOutput json = ClewAtLeisure("solve", {"--json", bundle});
  EXPECT_EQ(json.exit_status, kExitBug);
  const auto answer = nlohmann::json::parse(json.text, nullptr, false);
  ASSERT_FALSE(answer.is_discarded()) << json.text;
  EXPECT_EQ(answer.value("verdict", ""), "model-differs");
  EXPECT_EQ(answer["model_difference"].value("call", ""), "openat");
  EXPECT_NE(answer["model_difference"].value("text", ""), "");
}

// Of a program whose first thread looks at results of calls while two others
// race: the first of them is false.
nlohmann::json SolveFalseResultBesideARace(const std::string& bundle,
                                           const std::string& form,
                                           const std::string& limit_s) {
  const ProgramOutput recorded =
      Clew({"record", "-o", bundle, "--", Tracee("beside"), form});
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  ReplaceResult(bundle + "/inputs.pb", __NR_getppid, int64_t{2'000'000'000});
  const ProgramOutput solved =
      Clew({"solve", "--json", "--time-limit", limit_s, bundle});
  auto answer = nlohmann::json::parse(solved.text, nullptr, false);
  EXPECT_FALSE(answer.is_discarded()) << solved.text;
  return answer;
}

TEST(ContradictionTest, AFalseResultBesideARaceIsTheModelsWithoutASearch) {
  const Scratch scratch;
  const auto answer =
      SolveFalseResultBesideARace(scratch.Path("b.clew"), "apart", "60");
  EXPECT_EQ(answer.value("verdict", ""), "model-differs") << answer;
  EXPECT_EQ(answer["model_difference"].value("call", ""), "getppid");
  EXPECT_TRUE(answer.value("in_every_order", false)) << answer;
}

TEST(ContradictionTest, AFalseResultMixedWithARaceIsNotJudgedAtOnce) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const auto answer = SolveFalseResultBesideARace(bundle, "mixed", "3");
  EXPECT_FALSE(answer.value("in_every_order", true)) << answer;
}

nlohmann::json ReadReport(const std::string& path) {
  return nlohmann::json::parse(ReadWholeText(path).value_or(""), nullptr,
                               false);
}

TEST(ContradictionTest, AReportHasThePlaceAndNothingOfTheProgramsData) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  ASSERT_NO_FATAL_FAILURE(RecordFalseResult(bundle));
  const ProgramOutput told = ClewAtLeisure("report-bug", {bundle});
  ASSERT_EQ(told.exit_status, kExitOk) << told.text;
  const std::string path = bundle + ".report.json";
  EXPECT_THAT(told.text, testing::HasSubstr(path + ": "));
  const std::string text = ReadWholeText(path).value_or("");
  EXPECT_LT(text.size(), 200'000u);

  const auto report = ReadReport(path);
  ASSERT_FALSE(report.is_discarded()) << text;
  EXPECT_EQ(report.value("verdict", ""), "model-differs");
  EXPECT_THAT(report.value("difference", ""), testing::HasSubstr("ld-linux"));
  // The call that was falsified: its path is a pointer, its flags are told.
  const auto& inputs = report["inputs"];
  const auto found = std::ranges::find_if(inputs, [](const auto& input) {
    return input.value("call", "") == "openat";
  });
  ASSERT_NE(found, inputs.end()) << text;
  EXPECT_EQ(found->value("result", 0), -ENOENT);
  EXPECT_EQ((*found)["arguments"][1], "pointer");
  EXPECT_EQ((*found)["arguments"][2], "0x80000");  // O_CLOEXEC
  EXPECT_FALSE(report["blocks"].empty());
  EXPECT_FALSE(report["instructions"].empty());
  EXPECT_FALSE(report["mappings_at_start"].empty());

  EXPECT_EQ(text.find(kWordOfTheProgram), std::string::npos);
  const std::string folder =
      std::filesystem::path(Tracee("fpstate")).parent_path();
  EXPECT_EQ(text.find(folder), std::string::npos);
}

TEST(ContradictionTest, AReportIsNotWrittenOverAFileNorOfAWitness) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  ASSERT_NO_FATAL_FAILURE(RecordFalseResult(bundle));
  const std::string path = scratch.Path("report");
  const ProgramOutput told =
      ClewAtLeisure("report-bug", {"--json", "-o", path, bundle});
  ASSERT_EQ(told.exit_status, kExitOk) << told.text;
  const auto json = nlohmann::json::parse(told.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << told.text;
  EXPECT_EQ(json.value("file", ""), path);
  EXPECT_EQ(json.value("bytes", 0u), std::filesystem::file_size(path));
  EXPECT_EQ(json.value("inputs", size_t{0}), ReadReport(path)["inputs"].size());

  const ProgramOutput again = ClewAtLeisure("report-bug", {"-o", path, bundle});
  EXPECT_EQ(again.exit_status, kExitUsage) << again.text;

  const std::string solved = scratch.Path("solved.clew");
  ASSERT_EQ(Clew({"record", "-o", solved, "--", Tracee("fpstate")}).exit_status,
            0);
  EXPECT_EQ(ClewAtLeisure("report-bug", {solved}).exit_status, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(solved + ".report.json"));
}

}  // namespace
}  // namespace clew::e2e
