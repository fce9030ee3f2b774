// Goal: a unit that runs under clewd-run leaves a bundle with its trigger and
// its score when it fails, also if clewd is killed meanwhile, and when a person
// ends it; secrets of its environment do not get as far as ready/.
// Method: the built programs, software PT, real recordings.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/os/fd.h"
#include "daemon/control/control.h"
#include "daemon/spool/spool.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::kHangMs;
using test::NamesIn;
using test::Process;
using test::ReadText;
using test::Scratch;
using test::WaitUntil;

constexpr const char* kSecret = "hunter2-and-more";

// By the source that records the unit.
class SoftwareUnitTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (getenv("CLEW_BINARY_DIR") == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    test::WriteText(
        At("etc/clew/clewd.conf"),
        "clew = " + test::Program("clew") + "\ndisk_free_bytes = 0\n");
    StartDaemon();
  }
  std::string At(const std::string& name) const { return scratch_.Path(name); }
  std::string Spool(const std::string& name) const {
    return At("var/lib/clew/spool/" + name);
  }
  Result<std::string> Reply(const Request& request) const {
    return Ask(At("run/clew/clewd.sock"), request, kHangMs);
  }
  void StartDaemon() {
    clewd_ = std::make_unique<Process>(
        std::vector<std::string>{test::Program("clewd"), "--root",
                                 scratch_.root()},
        At("log"));
    ASSERT_TRUE(WaitUntil([&] { return Reply(StatusRequest()).has_value(); }))
        << ReadText(At("log"));
  }
  // As systemd would start a.service.
  std::unique_ptr<Process> StartUnit(const std::string& program,
                                     const std::string& seed, int input = -1,
                                     const std::string& argument = "") {
    std::vector<std::string> words = {test::Program("clewd-run"), "--root",
                                      scratch_.root(), "a.service"};
    if (!GetParam().empty()) {
      words.insert(words.end(), {"--source", GetParam(), "--seed", seed});
    }
    words.insert(words.end(), {"--", program});
    if (!argument.empty()) {
      words.push_back(argument);
    }
    return std::make_unique<Process>(
        words, At("unit"),
        std::vector<std::string>{"CLEW=" + test::Program("clew"),
                                 fmt::format("DB_PASSWORD={}", kSecret)},
        input);
  }
  // The bundle that is ready, once it is.
  pb::Manifest Ready() {
    EXPECT_TRUE(
        WaitUntil([&] { return NamesIn(Spool("ready")).size() == 1; }, 3))
        << ReadText(At("log")) << ReadText(At("unit"));
    pb::Manifest manifest;
    for (const std::string& name : NamesIn(Spool("ready"))) {
      folder_ = Spool("ready/" + name);
      EXPECT_TRUE(manifest.ParseFromString(ReadText(folder_ + "/manifest.pb")));
    }
    return manifest;
  }
  // tests/programs/bank fails under some seeds.
  void FailOnce() {
    for (int seed = 1; seed < 200; ++seed) {
      const auto unit = StartUnit(test::Program("../tests/programs/bank"),
                                  std::to_string(seed));
      if (WEXITSTATUS(unit->Wait()) == 1) {
        return;
      }
    }
    FAIL() << "no seed fails: " << ReadText(At("unit"));
  }

  Scratch scratch_;
  std::unique_ptr<Process> clewd_;
  std::string folder_;
};

TEST_P(SoftwareUnitTest, ACrashBecomesABundleAlsoIfClewdIsKilledMeanwhile) {
  FailOnce();
  // Mostly in the midst of the check; the bundle survives any moment.
  ASSERT_TRUE(WaitUntil([&] { return NamesIn(Spool("incoming")).empty(); }));
  clewd_->Kill();
  ASSERT_TRUE(test::BecomesFree(Spool("lock")));
  StartDaemon();
  const pb::Manifest manifest = Ready();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(manifest.trigger().unit(), "a.service");
  EXPECT_EQ(manifest.failure().signal(), SIGABRT);
  ASSERT_TRUE(manifest.has_sufficiency());
  EXPECT_TRUE(manifest.sufficiency().decodes());
  EXPECT_EQ(manifest.sufficiency().score(), 100u)
      << manifest.sufficiency().DebugString();
  for (const char* file : {"core", "start.pb", "inputs.pb", "manifest.pb"}) {
    EXPECT_EQ(ReadText(folder_ + "/" + file).find(kSecret), std::string::npos)
        << file;
  }
  EXPECT_GT(manifest.redactions_size(), 0);
  EXPECT_EQ(NamesIn(Spool("ready")).size(), 1u);
  EXPECT_TRUE(NamesIn(Spool("checking")).empty());
}

// The limit is that of clewd.conf, which clewd-run reads.
TEST_P(SoftwareUnitTest, BeyondSoftwareBytesTheUnitGoesOnWithoutATrace) {
  test::WriteText(
      At("etc/clew/clewd.conf"),
      ReadText(At("etc/clew/clewd.conf")) + "software_bytes = 1M\n");
  const auto unit = StartUnit(test::Program("../tests/recorder/programs/"
                                            "recorder_tracee_endings"),
                              "1", -1, "beyond");
  EXPECT_EQ(WEXITSTATUS(unit->Wait()), 1) << ReadText(At("unit"));
  EXPECT_NE(ReadText(At("unit")).find("the recording is dropped"),
            std::string::npos)
      << ReadText(At("unit"));
  const pb::Manifest manifest = Ready();
  EXPECT_NE(manifest.trace_dropped().find("1048576 bytes"), std::string::npos)
      << manifest.trace_dropped();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(manifest.failure().signal(), SIGABRT);
  EXPECT_EQ(manifest.sufficiency().score(), 0u);
  EXPECT_FALSE(ReadText(folder_ + "/core").empty());
}

TEST_P(SoftwareUnitTest, APersonCanOnlyEndARunningOne) {
  // cat waits for what never comes.
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd input(ends[0]);
  const Fd output(ends[1]);
  const auto unit = StartUnit("/bin/cat", "1", input.get());
  const auto is_listed = [&] {
    const auto units = Reply(UnitsRequest());
    return units && units->find("\"software\"") != std::string::npos;
  };
  ASSERT_TRUE(WaitUntil(is_listed)) << ReadText(At("unit"));
  const SnapshotRequest request{0, "a.service", false, ""};
  const auto refused = Reply(request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("--end"), std::string::npos)
      << refused.error().message;
  // The program may be about to start still.
  ASSERT_TRUE(WaitUntil([&] {
    return Reply(SnapshotRequest{0, "a.service", true, ""}).has_value();
  }));
  ASSERT_TRUE(unit->Ends()) << ReadText(At("log"));
  const pb::Manifest manifest = Ready();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_REQUEST);
  EXPECT_EQ(manifest.failure().signal(), SIGABRT);
}

// As the section of the unit in clewd.conf says.
class ConfiguredUnitTest : public SoftwareUnitTest {};

TEST_P(ConfiguredUnitTest, TheEndOfALongRunBecomesABundle) {
  test::WriteText(At("etc/clew/clewd.conf"),
                  ReadText(At("etc/clew/clewd.conf")) +
                      "[unit a.service]\ntracer = ring\nring = 1M\n");
  const auto unit =
      StartUnit(test::Program("../tests/programs/limited_wait"), "");
  EXPECT_EQ(WEXITSTATUS(unit->Wait()), 1) << ReadText(At("unit"));
  EXPECT_NE(ReadText(At("unit")).find("the end of the run is kept"),
            std::string::npos)
      << ReadText(At("unit"));
  const pb::Manifest manifest = Ready();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(manifest.failure().signal(), SIGABRT);
  EXPECT_EQ(manifest.sufficiency().score(), 100u)
      << manifest.sufficiency().DebugString();
}

INSTANTIATE_TEST_SUITE_P(Ring, ConfiguredUnitTest, testing::Values(""));

INSTANTIATE_TEST_SUITE_P(Sources, SoftwareUnitTest,
                         testing::Values("qemu", "tracer"),
                         [](const auto& source) { return source.param; });

}  // namespace
}  // namespace clew::daemon
