// Goal: what a reader must be told of code that no file holds is told once, and
// again when it was replaced; the image that is made of it has it at its time.
// Method: by hand, and random writes against a copy of memory byte by byte.
#include "recorder/qemu/generated_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>

#include "common/os/scratch_folder.h"
#include "recorder/qemu/raw_code.h"
#include "recorder/software/generated_image.h"

namespace clew::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::byte> Filled(size_t count, int value) {
  return std::vector(count, static_cast<std::byte>(value));
}

TEST(GeneratedCodeTest, FilesHoldCodeUntilTheyAreReleased) {
  GeneratedCode code;
  code.MapFile(0x1000, 0x3000);
  const auto in_file = code.LookAt(0x1ffe, Filled(4, 1));
  EXPECT_FALSE(in_file.generated);
  EXPECT_THAT(in_file.changes, IsEmpty());
  EXPECT_EQ(in_file.version, 0u);
  EXPECT_TRUE(code.LookAt(0x3ffe, Filled(4, 1)).generated);
  code.Release(0x2000, 0x1000);
  EXPECT_FALSE(code.LookAt(0x1ffc, Filled(4, 1)).generated);
  EXPECT_FALSE(code.LookAt(0x3000, Filled(4, 1)).generated);
  const auto over_file = code.LookAt(0x1ffe, Filled(4, 1));
  EXPECT_TRUE(over_file.generated);
  EXPECT_THAT(over_file.changes, ElementsAre(CodeChange{0x1ffe, 4, true}));
}

TEST(GeneratedCodeTest, OnlyWhatIsNewIsTold) {
  GeneratedCode code;
  EXPECT_THAT(code.LookAt(0x1ffc, Filled(8, 1)).changes,
              ElementsAre(CodeChange{0x1ffc, 8, false}));
  EXPECT_THAT(
      code.LookAt(0x1ffa, Filled(12, 1)).changes,
      ElementsAre(CodeChange{0x1ffa, 2, false}, CodeChange{0x2004, 2, false}));
  const auto known = code.LookAt(0x1ffb, Filled(3, 1));
  EXPECT_TRUE(known.generated);
  EXPECT_THAT(known.changes, IsEmpty());
  EXPECT_EQ(known.version, 0u);
}

TEST(GeneratedCodeTest, ReplacedCodeHasANewVersion) {
  GeneratedCode code;
  (void)code.LookAt(0x1000, Filled(8, 1));
  (void)code.LookAt(0x5000, Filled(8, 1));
  const auto replaced = code.LookAt(0x1007, Filled(4, 2));
  // Three bytes of it were not known: there from the start for a reader.
  EXPECT_THAT(replaced.changes, ElementsAre(CodeChange{0x1007, 4, true},
                                            CodeChange{0x1008, 3, false}));
  EXPECT_EQ(replaced.version, 1u);
  EXPECT_EQ(code.LookAt(0x1000, Filled(4, 1)).version, 1u);
  EXPECT_EQ(code.LookAt(0x5000, Filled(4, 1)).version, 0u);
  EXPECT_EQ(code.LookAt(0x5000, Filled(4, 3)).version, 2u);
  EXPECT_EQ(code.latest_version(), 2u);
}

TEST(GeneratedCodeTest, AFileMappedOverCodeReplacesIt) {
  GeneratedCode code;
  code.MapFile(0x1000, 0x1000);
  EXPECT_EQ(code.LookAt(0x1000, Filled(4, 1)).version, 0u);
  code.MapFile(0x1000, 0x1000);
  EXPECT_EQ(code.LookAt(0x1000, Filled(4, 1)).version, 1u);
  (void)code.LookAt(0x4000, Filled(4, 1));
  code.MapFile(0x4000, 0x1000);
  EXPECT_EQ(code.LookAt(0x4000, Filled(4, 1)).version, 2u);
  code.Release(0x4000, 0x1000);
  EXPECT_THAT(code.LookAt(0x4000, Filled(4, 1)).changes,
              ElementsAre(CodeChange{0x4000, 4, true}));
}

class GeneratedImageTest : public testing::Test {
 protected:
  GeneratedImageTest() { std::ofstream(path_, std::ios::trunc); }

  void Write(uint64_t time, const CodeChange& change,
             std::span<const std::byte> bytes) {
    const RawCode head{.time = time,
                       .addr = change.addr,
                       .size_bytes = change.size_bytes,
                       .replaces = change.replaces ? 1u : 0u};
    std::ofstream file(path_, std::ios::app | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&head), sizeof(head));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  const ScratchFolder folder_ = *ScratchFolder::Make("clew-code");
  const std::string path_ = folder_.path() + "/code";
};

TEST_F(GeneratedImageTest, DamagedRecordsAreNamed) {
  Write(1, {0x1000, 8, false}, Filled(7, 1));
  const auto image = MakeGeneratedImage(path_);
  ASSERT_FALSE(image.has_value());
  EXPECT_EQ(image.error().code, ErrorCode::kCorruptInput);
  EXPECT_TRUE(MakeGeneratedImage(path_ + ".absent")->bytes.empty());
}

// Mappings from the start hold bytes that never ran, and never other bytes than
// those that were there first; later ones replace them at their time.
TEST_F(GeneratedImageTest, HasWhatRanAtItsTime) {
  constexpr uint64_t kBegin = 0x10ff0;
  constexpr size_t kSize = 200;
  const unsigned seed = 1;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::byte> memory = Filled(kSize, 0);
  GeneratedCode code;
  struct Ran {
    uint64_t time;
    uint64_t addr;
    std::vector<std::byte> bytes;
  };
  std::vector<Ran> all;
  for (uint64_t time = 1; time <= 300; ++time) {
    const size_t at = random() % kSize;
    const size_t size = 1 + random() % std::min<size_t>(12, kSize - at);
    if (random() % 4 == 0) {
      memory[at] = static_cast<std::byte>(random() % 256);
    }
    const auto bytes = std::span(memory).subspan(at, size);
    for (const CodeChange& change : code.LookAt(kBegin + at, bytes).changes) {
      Write(time, change,
            std::span(memory).subspan(change.addr - kBegin, change.size_bytes));
    }
    all.push_back({time, kBegin + at, {bytes.begin(), bytes.end()}});
  }
  const auto image = MakeGeneratedImage(path_);
  ASSERT_TRUE(image.has_value()) << image.error().message;
  std::map<uint64_t, std::byte> seen;
  // As a reader does: what overlaps nothing is there from the start.
  const auto map = [&](const GeneratedMapping& mapping) {
    for (uint64_t i = 0; i < mapping.size_bytes; ++i) {
      seen[mapping.addr.as_int() + i] = image->bytes[mapping.file_offset + i];
    }
  };
  std::vector<GeneratedMapping> later;
  for (const GeneratedMapping& mapping : image->mappings) {
    const auto taken = seen.lower_bound(mapping.addr.as_int());
    if (taken != seen.end() &&
        taken->first < mapping.addr.as_int() + mapping.size_bytes) {
      later.push_back(mapping);
    } else {
      map(mapping);
    }
  }
  auto next = later.begin();
  for (const Ran& ran : all) {
    for (; next != later.end() && next->time.as_int() <= ran.time; ++next) {
      map(*next);
    }
    for (size_t i = 0; i < ran.bytes.size(); ++i) {
      ASSERT_EQ(seen[ran.addr + i], ran.bytes[i]) << ran.time << " " << i;
    }
  }
}

}  // namespace
}  // namespace clew::recorder
