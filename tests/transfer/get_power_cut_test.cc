// Goal: wherever the power is cut while a bundle is fetched, the next look
// finds either no bundle of that name or a complete one, and one whose Get
// returned is there; a disk that fails ends the fetch at once.
// Method: exhaustive over the client's file operations, against the built
// clew-collector: the power goes after each, and for each the mixtures of names
// and contents that the disk may hold are looked at.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::Files;
using collector::ReadFiles;
using collector::TempFolder;

constexpr int kOutcomesMax = 1000;

Files SmallBundleFiles() {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  return {{"manifest.pb", manifest.SerializeAsString()},
          {"perf.data", "trace"},
          {"inputs.pb", ""},
          {"images/ab/prog", "code"}};
}

std::unique_ptr<Client> ClientOf(const CollectorProcess& process) {
  ClientOptions options;
  options.address = process.address();
  options.insecure_loopback = true;
  options.attempts_max = 100;  // a second one would be one too many
  options.pause_ms_first = 10'000;
  auto client = Client::Create(options);
  EXPECT_TRUE(client.has_value());
  return client ? *std::move(client) : nullptr;
}

TEST(GetPowerCutTest, EveryCutLeavesAllOrNothing) {
  const TempFolder folder;
  CollectorProcess process(folder.path(),
                           {"insecure_loopback = yes", "solvers = 0",
                            "clew = /bin/false", "disk_free_bytes_min = 0"});
  ASSERT_TRUE(process.Start());
  collector::WriteFiles(folder / "bundle", SmallBundleFiles());
  const auto client = ClientOf(process);
  ASSERT_NE(client, nullptr);
  const auto sent = client->Upload(folder / "bundle", nullptr);
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  const std::string id = sent->hex();
  bool finished = false;
  int cuts = 0;
  for (; !finished; ++cuts) {
    ASSERT_LT(cuts, 100) << "Get never finishes";
    const TempFolder disk;
    PowerCutFiles files(disk.path());
    files.FailAfter(cuts);
    finished = client->Get(id, disk / "b1.clew", files, nullptr).has_value();
    bool complete = false;  // random ones beyond the limit will do
    ForEveryChoice(
        kOutcomesMax, static_cast<uint64_t>(cuts),
        [&](const PowerCutFiles::Choose& choose) {
          const TempFolder after;
          files.AfterCut(after / "disk", choose);
          const std::string out = after / "disk/b1.clew";
          ASSERT_TRUE(fs::exists(out) || !finished) << "cut " << cuts;
          ASSERT_TRUE(!fs::exists(out) || ReadFiles(out) == SmallBundleFiles())
              << "cut " << cuts;
        },
        &complete);
    // What was left behind is not in the way.
    files.Heal();
    if (!fs::exists(disk / "b1.clew")) {
      ASSERT_TRUE(client->Get(id, disk / "b1.clew", files, nullptr));
    }
    ASSERT_EQ(ReadFiles(disk / "b1.clew"), SmallBundleFiles());
  }
  EXPECT_GT(cuts, 12);
  printf("%d cuts\n", cuts);
}

}  // namespace
}  // namespace clew::transfer
