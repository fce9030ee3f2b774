// Goal: whatever is done to one file of a bundle, clew ends by itself: with an
// answer (perhaps with gaps or a divergence), or with a message and the exit
// code of its cause. Never by a signal, a hang, or a bug (70).
// Method: every file of a recorded bundle truncated at evenly spread positions
// and with single bits flipped at random ones, opened by the command that reads
// that file. CLEW_HOSTILE_TRUNCATIONS (200) and CLEW_HOSTILE_FLIPS (1000) per
// file; the defaults here are a tenth of that, for time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/digest.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;

uint64_t CountFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The command that reads a file of the bundle.
std::vector<std::string> CommandFor(const std::string& file) {
  if (file == "start.pb" || file == "inputs.pb" || file == "schedule.pb") {
    return {"replay", "--check", "1"};
  }
  if (file == "manifest.pb" || file.starts_with("core")) {
    return {"info"};
  }
  return {"decode", "--as", "none"};
}

class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    bundle_ = scratch_.Path("b.clew");
    ASSERT_EQ(Clew({"record", "-o", bundle_, "--seed", "1", "--",
                    Tracee("bank"), "4"})
                  .exit_status,
              kExitOk);
    ASSERT_EQ(Clew({"solve", bundle_}).exit_status, kExitOk);
    ASSERT_EQ(Clew({"replay", "--check", "1", bundle_}).exit_status, kExitOk);
  }

  // Opens the damaged bundle; `how` says what was done to it.
  void Open(const fs::path& file, const std::string& how) {
    std::vector<std::string> arguments = CommandFor(file.filename());
    arguments.insert(arguments.begin(), Binary());
    arguments.push_back(bundle_);
    const ProgramOutput output = e2e::Run(arguments, /*limit_s=*/60);
    const int status = output.exit_status;
    EXPECT_TRUE(status >= kExitOk && status <= kExitLimit &&
                status != kExitUsage)
        << file << ": " << how << ": exit " << status << ": " << output.text;
    EXPECT_TRUE(status != kExitCorrupt ||
                output.text.find("b.clew") != std::string::npos)
        << "no place in the message: " << output.text;
    corrupt_ += status == kExitCorrupt ? 1 : 0;
  }

  void Truncate(const fs::path& file, uint64_t times) {
    const std::string whole = ReadFile(file);
    for (uint64_t i = 0; i < times; ++i) {
      const size_t size = whole.size() * i / times;
      WriteFile(file, whole.substr(0, size));
      Open(file, fmt::format("cut to {} of {} bytes", size, whole.size()));
    }
    WriteFile(file, whole);
  }

  void Flip(const fs::path& file, uint64_t times) {
    const std::string whole = ReadFile(file);
    Random random(whole.size());
    for (uint64_t i = 0; i < times && !whole.empty(); ++i) {
      const uint64_t bit = random.Below(8 * whole.size());
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      WriteFile(file, damaged);
      Open(file, fmt::format("bit {} flipped", bit));
    }
    WriteFile(file, whole);
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(bundle_)) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  Scratch scratch_;
  std::string bundle_;
  int corrupt_ = 0;
};

TEST_F(HostileTest, EveryTruncationEndsInAnAnswerOrAMessage) {
  for (const fs::path& file : Files()) {
    Truncate(file, CountFrom("CLEW_HOSTILE_TRUNCATIONS", 20));
  }
  EXPECT_GT(corrupt_, 0) << "no damage was ever noticed";
}

TEST_F(HostileTest, EveryFlippedBitEndsInAnAnswerOrAMessage) {
  for (const fs::path& file : Files()) {
    Flip(file, CountFrom("CLEW_HOSTILE_FLIPS", 100));
  }
  EXPECT_GT(corrupt_, 0) << "no damage was ever noticed";
}

}  // namespace
}  // namespace clew::e2e
