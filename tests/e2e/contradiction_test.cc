// Goal: a bundle whose evidence contradicts itself (one recorded branch flipped
// in a copy) is answered unsat, and the answer names the branch's thread; no
// flipped bundle crashes the solver.
// Method: property over a recorded bundle: flips of the newest branch of TNT
// packets, spread over each core's trace (printed), kept where the copy still
// decodes without a gap. Oracle: the original was solved; the rest of the
// flipped path is that of the original.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "bundle/bundle.h"
#include "common/os/file.h"
#include "decoder/bundle_trace.h"
#include "decoder/pt/packet.h"
#include "decoder/streams.h"
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
    EXPECT_TRUE(answer.exit_status == 1 || answer.exit_status == 5);
    if (answer.exit_status == 1) {
      ++unsat;
      EXPECT_NE(answer.text.find("in conflict"), std::string::npos);
      EXPECT_NE(answer.text.find("thread "), std::string::npos);
    }
  }
  fmt::print("{} flipped bundles decoded whole, {} answered unsat\n", solved,
             unsat);
  EXPECT_GE(unsat, 3u);
}

}  // namespace
}  // namespace clew::e2e
