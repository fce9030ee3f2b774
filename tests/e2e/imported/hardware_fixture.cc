#include "tests/e2e/imported/hardware_fixture.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "common/result.h"

namespace clew::e2e {

void HardwareFixture::SetUp() {
  const auto run = Clew(Record(scratch_.Path("probe"), {"--", "/bin/true"}));
  if (run.exit_status == kExitEnvironment) {
    GTEST_SKIP() << run.text;
  }
  ASSERT_EQ(run.exit_status, kExitOk) << run.text;
}

std::vector<std::string> HardwareFixture::Record(
    const std::string& bundle, const std::vector<std::string>& more) const {
  std::vector<std::string> words = {"record",          "--source", "perf",
                                    "--sideband-only", "-o",       bundle};
  words.insert(words.end(), options_.begin(), options_.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json HardwareFixture::Info(const std::string& bundle) {
  const auto run = Clew({"info", "--json", "--no-backtraces", bundle});
  EXPECT_EQ(run.exit_status, kExitOk) << run.text;
  return JsonIn(run.text);
}

bool HardwareFixture::RecordUntil(
    const std::string& bundle, std::vector<std::string> target,
    const std::function<bool()>& has_enough) const {
  constexpr int kSecondsMax = 256;
  target.insert(target.end(), {"--timeout", ""});
  for (int seconds = 1; seconds <= kSecondsMax; seconds *= 4) {
    std::filesystem::remove_all(bundle);
    target.back() = std::to_string(seconds);
    const auto run = Clew(Record(bundle, target));
    EXPECT_EQ(run.exit_status, kExitOk) << run.text;
    if (run.exit_status != kExitOk || has_enough()) {
      return run.exit_status == kExitOk;
    }
  }
  return false;
}

nlohmann::json JsonIn(const std::string& text) {
  const size_t begin = text.find('{');
  const size_t end = text.rfind('}');
  const auto document =
      nlohmann::json::parse(begin == std::string::npos || end < begin
                                ? ""
                                : text.substr(begin, end - begin + 1),
                            nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(document.is_discarded()) << text;
  return document;
}

void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace clew::e2e
