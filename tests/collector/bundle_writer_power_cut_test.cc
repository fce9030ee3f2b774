// Goal: wherever the power is cut while a recorder writes a bundle, the next
// look finds either no bundle of that name or a complete one, and a bundle
// whose Publish returned is there.
// Method: exhaustive: the power goes after each operation, and for each every
// mixture of names and contents that the disk may hold is looked at.
#include <gtest/gtest.h>

#include <filesystem>

#include "bundle/manifest/bundle_writer.h"
#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using bundle::BundleWriter;
using collector::Bytes;
using collector::Files;
using collector::ReadFiles;
using collector::TempFolder;

constexpr int kOutcomesMax = 4096;
const Files kBundle = {{"images/ab/prog", "code"},
                       {"perf.data", "trace"},
                       {"core", "memory"},
                       {"manifest.pb", "what"}};

Status WriteBundle(FileSystem& files, const std::string& out) {
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, out));
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images/ab"));
  for (const auto& [path, contents] : kBundle) {
    if (path == "core") {  // as gdb writes it: behind our back
      collector::WriteFiles(bundle.folder(), {{path, contents}});
      CLEW_RETURN_IF_ERROR(bundle.Sync(path));
    } else {
      CLEW_RETURN_IF_ERROR(bundle.Write(path, Bytes(contents)));
    }
  }
  return bundle.Publish();
}

TEST(BundleWriterPowerCutTest, EveryCutLeavesAllOrNothing) {
  bool finished = false;
  int cuts = 0;
  int outcomes = 0;
  for (; !finished; ++cuts) {
    ASSERT_LT(cuts, 100) << "the writer never finishes";
    const TempFolder disk;
    PowerCutFiles files(disk.path());
    files.FailAfter(cuts);
    finished = WriteBundle(files, disk / "b1.clew").has_value();
    bool complete = false;
    outcomes += ForEveryChoice(
        kOutcomesMax, static_cast<uint64_t>(cuts),
        [&](const PowerCutFiles::Choose& choose) {
          const TempFolder folder;
          files.AfterCut(folder / "after", choose);
          const std::string out = folder / "after/b1.clew";
          ASSERT_TRUE(fs::exists(out) || !finished) << "cut " << cuts;
          if (fs::exists(out)) {
            ASSERT_EQ(ReadFiles(out), kBundle) << "cut " << cuts;
            return;
          }
          PowerCutFiles after(folder / "after");
          ASSERT_TRUE(WriteBundle(after, out).has_value()) << "cut " << cuts;
          ASSERT_EQ(ReadFiles(out), kBundle) << "cut " << cuts;
        },
        &complete);
    ASSERT_TRUE(complete) << "more than " << kOutcomesMax << " outcomes";
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(cuts, 15);
  RecordProperty("cuts", cuts);
  RecordProperty("outcomes", outcomes);
  printf("%d cuts, %d outcomes\n", cuts, outcomes);
}

}  // namespace
}  // namespace clew::recorder
