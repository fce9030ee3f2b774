// Goal: a bundle goes from incoming/ to uploaded/ once, whatever fails on the
// way: broken ones are parked with the reason, attempts that failed are
// repeated later and later, rates are kept, and a new daemon goes on where the
// folders say. Method: fake work and clock; a daemon that is dropped at each
// step.
#include "daemon/pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/check.h"
#include "proto/bundle.pb.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;
using test::FakeClock;
using test::FakeWork;
using test::MakeBundle;
using test::NamesIn;
using test::Scratch;
using What = JobEnd::What;

constexpr const char* kName = "a.service~1~77.clew";

// A daemon's life as far as the pipeline goes.
struct Life {
  explicit Life(const std::string& root, FakeClock& time)
      : clock(time),
        loop(*Loop::Make(time)),
        spool(*Spool::Open(PosixFileSystem(), root,
                           {.bytes = uint64_t{1} << 40, .free_bytes = 0})) {
    pipeline = std::make_unique<Pipeline>(
        Pipeline::Parts{*loop, clock, spool, admission, log, counters,
                        last_error,
                        [this](uint64_t bound) {
                          EXPECT_GT(bound, 0u);
                          return shorter ? bound - 1 : 0;
                        }},
        prepare, &upload, 1000);
  }
  void Advance(uint64_t ms) {
    clock.Advance(ms);
    loop->Post([this] { loop->Stop(); });
    CLEW_CHECK(loop->Run().has_value(), "the loop failed");
  }
  std::vector<std::string> In(Stage stage) { return spool.List(stage); }

  FakeClock& clock;
  std::unique_ptr<Loop> loop;
  Spool spool;
  Admission admission{{.per_failure = 2}};
  Log log{-1, false};
  Counters counters;
  LastError last_error;
  bool shorter = false;  // pauses, by as much as can be
  FakeWork prepare;
  FakeWork upload;
  std::unique_ptr<Pipeline> pipeline;
};

class PipelineTest : public testing::Test {
 protected:
  std::string root() const { return scratch_.Path("spool"); }
  void Arrive(const std::string& name, int signal = 6) const {
    MakeBundle(root() + "/incoming/" + name, signal);
  }
  pb::Manifest ManifestIn(const std::string& folder) const {
    pb::Manifest manifest;
    const std::string path = root() + "/" + folder + "/manifest.pb";
    CLEW_CHECK(manifest.ParseFromString(test::ReadText(path)), "{}", path);
    return manifest;
  }
  Scratch scratch_;
  FakeClock clock_;
};

TEST_F(PipelineTest, ABundleGoesAllTheWay) {
  Life life(root(), clock_);
  Arrive(kName);
  life.pipeline->LookForWork();
  ASSERT_TRUE(life.prepare.running());
  EXPECT_EQ(life.prepare.folder(), root() + "/checking/" + kName);
  const pb::Trigger trigger =
      ManifestIn(std::string("checking/") + kName).trigger();
  EXPECT_EQ(trigger.kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(trigger.unit(), "a.service");
  EXPECT_EQ(trigger.process(), 77);
  EXPECT_FALSE(life.upload.running());
  life.prepare.End();
  ASSERT_TRUE(life.upload.running());
  EXPECT_EQ(life.upload.folder(), root() + "/ready/" + kName);
  life.upload.End();
  EXPECT_EQ(life.In(Stage::kUploaded), std::vector<std::string>{kName});
  EXPECT_EQ(life.counters.saved, 1u);
  EXPECT_EQ(life.counters.uploaded, 1u);
  life.pipeline->LookForWork();
  EXPECT_EQ(life.upload.starts, 1) << "sent again";
}

TEST_F(PipelineTest, ANewLifeGoesOnAtEveryStep) {
  // Steps: arrived, being prepared, ready, being sent.
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    const std::string root = scratch_.Path("life" + std::to_string(step));
    {
      Life life(root, clock_);
      MakeBundle(root + "/incoming/" + kName, 6);
      if (step > 0) {
        life.pipeline->LookForWork();
      }
      if (step == 2) {
        life.pipeline->SetUpload(nullptr, 1000);
      }
      if (step > 1) {
        life.prepare.End();
      }
    }
    Life next(root, clock_);
    // Rates start anew, but an admitted bundle must not be asked again.
    for (int i = 0; step > 0 && i < 2; ++i) {
      next.admission.Saved({"a.service", 6}, 0, clock_.MonotonicMs());
    }
    next.pipeline->LookForWork();
    if (step < 2) {
      ASSERT_TRUE(next.prepare.running());
      next.prepare.End();
    }
    ASSERT_TRUE(next.upload.running());
    next.upload.End();
    EXPECT_EQ(next.In(Stage::kUploaded), std::vector<std::string>{kName});
  }
}

TEST_F(PipelineTest, AttemptsAreRepeatedLaterAndLaterUpToAnHour) {
  Life life(root(), clock_);
  Arrive(kName);
  life.pipeline->LookForWork();
  life.prepare.End();
  uint64_t wait_ms = 1000;
  for (int attempt = 1; attempt <= 16; ++attempt) {
    ASSERT_TRUE(life.upload.running()) << attempt;
    life.upload.End({What::kRetry, "no collector"});
    EXPECT_FALSE(life.upload.running());
    EXPECT_EQ(life.pipeline->retry_in_ms(), wait_ms);
    life.Advance(wait_ms - 1);
    EXPECT_FALSE(life.upload.running()) << "too early";
    life.Advance(1);
    wait_ms = std::min(wait_ms * 2, Pipeline::kRetryMsMax);
  }
  EXPECT_EQ(wait_ms, Pipeline::kRetryMsMax);
  EXPECT_EQ(life.counters.upload_failures, 16u);
  EXPECT_NE(life.last_error.message.find("no collector"), std::string::npos);
  ASSERT_TRUE(life.upload.running());
  life.upload.End();
  EXPECT_EQ(life.counters.uploaded, 1u);
}

TEST_F(PipelineTest, PausesAreShorterByUpToHalfByChance) {
  Life life(root(), clock_);
  Arrive(kName);
  life.pipeline->LookForWork();
  life.prepare.End();
  life.shorter = true;
  uint64_t pause_ms = 1000;
  for (int attempt = 1; attempt <= 16; ++attempt) {
    ASSERT_TRUE(life.upload.running()) << attempt;
    life.upload.End({What::kRetry, "no collector"});
    EXPECT_EQ(life.pipeline->retry_in_ms(), pause_ms / 2);
    life.Advance(pause_ms / 2);
    pause_ms = std::min(pause_ms * 2, Pipeline::kRetryMsMax);
  }
}

TEST_F(PipelineTest, ABundleThatFailsDoesNotHoldUpOthers) {
  Life life(root(), clock_);
  Arrive("a.service~1~1.clew");
  Arrive("b.service~2~2.clew");
  life.pipeline->LookForWork();
  life.prepare.End();
  life.prepare.End();
  ASSERT_TRUE(life.upload.folder().ends_with("a.service~1~1.clew"));
  life.upload.End({What::kRetry, "no"});
  life.Advance(1000);
  ASSERT_TRUE(life.upload.running());
  EXPECT_TRUE(life.upload.folder().ends_with("b.service~2~2.clew"));
  life.upload.End();
  ASSERT_TRUE(life.upload.running());
  EXPECT_TRUE(life.upload.folder().ends_with("a.service~1~1.clew"));
}

TEST_F(PipelineTest, WhatIsRefusedIsParkedWithTheReason) {
  Life life(root(), clock_);
  Arrive("a.service~1~1.clew");
  Arrive("b.service~2~2.clew");
  fs::create_directories(root() + "/incoming/c.service~3~3.clew");
  life.pipeline->LookForWork();
  life.prepare.End({What::kRefuse, "check: broken"});
  life.prepare.End();
  life.upload.End({What::kRefuse, "too large"});
  EXPECT_EQ(life.spool.WhyAside("a.service~1~1.clew", Stage::kRefused),
            "check: broken");
  EXPECT_EQ(life.spool.WhyAside("b.service~2~2.clew", Stage::kRefused),
            "too large");
  EXPECT_NE(life.spool.WhyAside("c.service~3~3.clew", Stage::kRefused)
                .find("no bundle"),
            std::string::npos);
  EXPECT_EQ(life.counters.refused_bundles, 3u);
  EXPECT_EQ(life.In(Stage::kRefused).size(), 3u);
}

TEST_F(PipelineTest, WhatCannotBePreparedIsSetAsideAndHoldsUpNobody) {
  Life life(root(), clock_);
  Arrive("a.service~1~1.clew");
  life.pipeline->LookForWork();
  life.prepare.End({What::kRetry, "redaction: no"});
  Arrive("b.service~2~2.clew");
  life.pipeline->LookForWork();
  ASSERT_TRUE(life.prepare.running()) << "it waits for the other";
  EXPECT_TRUE(life.prepare.folder().ends_with("b.service~2~2.clew"));
  life.prepare.End();
  life.upload.End();
  uint64_t pause_ms = Pipeline::kDiskRetryMs;
  for (uint64_t tries = 2; tries <= Pipeline::kPrepareTriesMax; ++tries) {
    life.Advance(pause_ms - 1);
    ASSERT_FALSE(life.prepare.running()) << tries;
    life.Advance(1);
    ASSERT_TRUE(life.prepare.running()) << tries;
    life.prepare.End({What::kRetry, "redaction: no"});
    pause_ms = std::min(pause_ms * 2, Pipeline::kRetryMsMax);
  }
  EXPECT_EQ(life.In(Stage::kStuck),
            std::vector<std::string>{"a.service~1~1.clew"});
  EXPECT_EQ(life.spool.WhyAside("a.service~1~1.clew", Stage::kStuck),
            "10 tries failed, the last: redaction: no");
  EXPECT_EQ(life.counters.stuck, 1u);
  life.Advance(2 * Pipeline::kRetryMsMax);
  EXPECT_FALSE(life.prepare.running());
  // Brought back, it begins anew.
  ASSERT_FALSE(life.pipeline->BringBack("c.service~1~1.clew").has_value());
  EXPECT_EQ(life.pipeline->BringBack("").value_or(9), 1u);
  ASSERT_TRUE(life.prepare.running());
  EXPECT_TRUE(NamesIn(root() + "/stuck").empty()) << "the reason stayed";
  life.prepare.End();
  life.upload.End();
  EXPECT_EQ(life.In(Stage::kUploaded).size(), 2u);
}

TEST_F(PipelineTest, WhatWasRefusedIsBroughtBackByItsName) {
  Life life(root(), clock_);
  Arrive(kName);
  life.pipeline->LookForWork();
  life.prepare.End({What::kRefuse, "no"});
  EXPECT_EQ(life.pipeline->BringBack("").value_or(9), 0u);
  EXPECT_EQ(life.pipeline->BringBack(kName).value_or(9), 1u);
  EXPECT_TRUE(life.prepare.running());
}

TEST_F(PipelineTest, TwoOfOneNameAreBothSentOrParked) {
  for (const What end : {What::kDone, What::kRefuse}) {
    SCOPED_TRACE(static_cast<int>(end));
    Life life(scratch_.Path("spool" + std::to_string(int(end))), clock_);
    for (int i = 0; i < 2; ++i) {
      MakeBundle(life.spool.Path(Stage::kIncoming, kName), 6);
      life.pipeline->LookForWork();
      ASSERT_TRUE(life.prepare.running());
      life.prepare.End();
      ASSERT_TRUE(life.upload.running());
      life.upload.End({end, "why"});
    }
    EXPECT_EQ(life.In(end == What::kDone ? Stage::kUploaded : Stage::kRefused),
              (std::vector<std::string>{kName, "a.service~2~77.clew"}));
  }
}

TEST_F(PipelineTest, WhatIsDeclinedAgainAndAgainIsParked) {
  Life life(root(), clock_);
  Arrive(kName);
  life.pipeline->LookForWork();
  life.prepare.End();
  for (uint64_t i = 1; i < Pipeline::kDeclinesMax; ++i) {
    life.upload.End({What::kDeclined, "quota"});
    EXPECT_EQ(life.In(Stage::kReady).size(), 1u) << i;
    life.Advance(Pipeline::kRetryMsMax);
  }
  life.upload.End({What::kDeclined, "quota"});
  EXPECT_EQ(life.spool.WhyAside(kName, Stage::kRefused), "quota");
}

TEST_F(PipelineTest, ALinkInABundleLeadsNowhere) {
  Life life(root(), clock_);
  fs::create_directories(root() + "/making");
  fs::create_symlink("/etc/passwd", root() + "/making/manifest.pb");
  fs::rename(root() + "/making", root() + "/incoming/" + kName);
  life.pipeline->LookForWork();
  EXPECT_FALSE(life.prepare.running());
  EXPECT_EQ(life.In(Stage::kRefused), std::vector<std::string>{kName});
}

TEST_F(PipelineTest, BeyondTheRateIsCountedAndToldWithTheNext) {
  Life life(root(), clock_);
  for (int i = 1; i <= 4; ++i) {
    Arrive(fmt::format("a.service~{0}~{0}.clew", i));
    life.pipeline->LookForWork();
    if (life.prepare.running()) {
      life.prepare.End();
    }
    if (life.upload.running()) {
      life.upload.End();
    }
  }
  EXPECT_EQ(life.counters.saved, 2u);
  EXPECT_EQ(life.counters.refused_rate, 2u);
  EXPECT_TRUE(NamesIn(root() + "/incoming").empty());
  life.Advance(3'600'000);
  Arrive("a.service~9~9.clew");
  life.pipeline->LookForWork();
  EXPECT_EQ(ManifestIn("checking/a.service~9~9.clew").trigger().not_saved(),
            2u);
}

TEST_F(PipelineTest, WhatAPersonAskedForIsAlwaysTaken) {
  Life life(root(), clock_);
  for (int i = 0; i < 2; ++i) {
    life.admission.Saved({"a.service", 6}, 0, clock_.MonotonicMs());
  }
  life.pipeline->ExpectRequested(77);
  Arrive(kName);
  life.pipeline->LookForWork();
  ASSERT_TRUE(life.prepare.running());
  EXPECT_EQ(ManifestIn(std::string("checking/") + kName).trigger().kind(),
            pb::Trigger::KIND_REQUEST);
}

TEST_F(PipelineTest, AFailedCheckOrStartIsNotTheEnd) {
  Life life(root(), clock_);
  Arrive(kName);
  life.prepare.fails = true;
  life.pipeline->LookForWork();
  EXPECT_FALSE(life.prepare.running());
  life.prepare.fails = false;
  life.Advance(Pipeline::kDiskRetryMs);
  ASSERT_TRUE(life.prepare.running());
  life.prepare.End({What::kRetry, "no memory"});
  life.Advance(Pipeline::kDiskRetryMs);
  ASSERT_TRUE(life.prepare.running());
  life.prepare.End({What::kUnchecked, "took too long"});
  EXPECT_EQ(life.counters.unchecked, 1u);
  EXPECT_TRUE(life.upload.running());
}

TEST_F(PipelineTest, WhatIsBeingSentIsNotRemoved) {
  Life life(root(), clock_);
  Arrive("a.service~1~1.clew");
  Arrive("b.service~2~2.clew");
  life.pipeline->LookForWork();
  life.prepare.End();
  life.prepare.End();
  ASSERT_TRUE(life.upload.folder().ends_with("a.service~1~1.clew"));
  life.spool.SetLimits({.bytes = 100, .free_bytes = 0});
  ASSERT_TRUE(life.pipeline->MakeRoom(1).has_value());
  EXPECT_EQ(life.In(Stage::kReady),
            std::vector<std::string>{"a.service~1~1.clew"});
  EXPECT_EQ(life.counters.lost, 1u);
}

TEST_F(PipelineTest, TheBudgetIsKeptAndLossCounted) {
  Life life(root(), clock_);
  life.pipeline->SetUpload(nullptr, 1000);
  for (int i = 1; i <= 2; ++i) {
    MakeBundle(root() + fmt::format("/incoming/{0}.service~{0}~{0}.clew", i), 6,
               100'000);
    life.spool.SetLimits({.bytes = 150'000, .free_bytes = 0});
    life.pipeline->LookForWork();
    life.prepare.End();
  }
  EXPECT_EQ(life.In(Stage::kReady),
            std::vector<std::string>{"2.service~2~2.clew"});
  EXPECT_EQ(life.counters.lost, 1u);
}

// What a stranger says: a trigger of its own, of a unit that is not its.
TEST_F(PipelineTest, AStrangersTriggerAndUnitCountNothing) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to make files of another user";
  }
  Life life(root(), clock_);
  const auto arrive = [&](const std::string& name) {
    const std::string folder = root() + "/incoming/" + name;
    Arrive(name);
    pb::Manifest manifest = ManifestIn("incoming/" + name);
    manifest.mutable_trigger()->set_kind(pb::Trigger::KIND_REQUEST);
    manifest.mutable_trigger()->set_unit("nginx.service");
    test::WriteText(folder + "/manifest.pb", manifest.SerializeAsString());
    ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  };
  for (const char* name : {"nginx.service~1~7.clew", "nginx.service~2~7.clew",
                           "nginx.service~3~7.clew"}) {
    arrive(name);
  }
  life.pipeline->LookForWork();
  const pb::Trigger trigger =
      ManifestIn("checking/nginx.service~1~7.clew").trigger();
  EXPECT_EQ(trigger.kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(trigger.unit(), "");
  life.prepare.End();
  life.prepare.End();
  EXPECT_FALSE(life.prepare.running());
  EXPECT_EQ(life.counters.refused_rate, 1u) << "two of one user and name";
  EXPECT_EQ(life.admission.Ask({"nginx.service", 6}, 0, clock_.MonotonicMs()),
            Admitted::kYes)
      << "the unit's own rate is used up";
  EXPECT_TRUE(test::NamesIn(root() + "/checking").empty());
}

// Killed between taking it over and judging it.
TEST_F(PipelineTest, AStrangersBundleStaysOneAcrossADeathOfTheDaemon) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to make files of another user";
  }
  {
    const Life life(root(), clock_);
    Arrive(kName);
    const std::string folder = root() + "/incoming/" + kName;
    pb::Manifest manifest = ManifestIn(std::string("incoming/") + kName);
    manifest.mutable_trigger()->set_unit("nginx.service");
    test::WriteText(folder + "/manifest.pb", manifest.SerializeAsString());
    ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  }
  {
    Life life(root(), clock_);
    ASSERT_TRUE(
        life.spool.Move(kName, Stage::kIncoming, Stage::kChecking).has_value());
    ASSERT_EQ(chown((root() + "/checking/" + kName).c_str(), 0, 0), 0);
    EXPECT_EQ(life.spool.OriginOf(kName), 65534u);
  }
  Life life(root(), clock_);
  life.pipeline->LookForWork();
  EXPECT_EQ(life.counters.triggers, 1u);
  EXPECT_EQ(ManifestIn(std::string("checking/") + kName).trigger().unit(), "");
  EXPECT_EQ(life.spool.OriginOf(kName), std::nullopt);
}

}  // namespace
}  // namespace clew::daemon
