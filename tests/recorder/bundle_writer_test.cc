// Goal: whatever operation of the file system fails, the next look finds either
// no bundle of that name or a complete one.
// Method: exhaustive: the real file system below a decorator that fails from
// its k-th operation on (and so also the clean-up), for every k; then once more
// with a recorder that starts over what is left.
#include "bundle/manifest/bundle_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/support/failing_files.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using bundle::BundleWriter;
using test::FailingFiles;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/clew-bundle-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

constexpr std::string_view kText = "payload";

Status WriteBundle(FileSystem& files, const std::string& out) {
  const auto bytes = std::as_bytes(std::span(kText));
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, out));
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  CLEW_RETURN_IF_ERROR(bundle.Write("images/a", bytes));
  CLEW_RETURN_IF_ERROR(bundle.Write("manifest.pb", bytes));
  return bundle.Publish();
}

void ExpectComplete(const std::string& out) {
  EXPECT_EQ(fs::file_size(out + "/images/a"), kText.size());
  EXPECT_EQ(fs::file_size(out + "/manifest.pb"), kText.size());
  EXPECT_FALSE(fs::exists(out + "/lock"));
}

// Lets `write` (Status(FileSystem&, const std::string& out)) fail at each of
// its operations in turn: a whole bundle is there then, or none, of which
// `after_none` (void(const std::string& out)) is told. Returns how many
// operations there were.
template <class Write, class AfterNone>
int FailEachOperation(Write write, AfterNone after_none) {
  bool finished = false;
  int works = 0;
  for (; !finished && works < 100; ++works) {
    const Folder folder;
    const std::string out = folder / "b1.clew";
    FailingFiles files(works);
    finished = write(files, out).has_value();
    EXPECT_TRUE(fs::exists(out) || !finished) << works;
    if (fs::exists(out)) {
      ExpectComplete(out);
    } else {
      after_none(out);
    }
  }
  EXPECT_TRUE(finished) << "the writer never finishes";
  return works;
}

TEST(BundleWriterTest, FailureOfEveryOperationLeavesAllOrNothing) {
  // The next recorder takes the place, whatever was left.
  const auto take_place = [](const std::string& out) {
    ASSERT_TRUE(WriteBundle(PosixFileSystem(), out).has_value());
    ExpectComplete(out);
  };
  EXPECT_GT(FailEachOperation(WriteBundle, take_place), 10);
}

// Beside another one, which is not wanted.
Status WriteByWayOfInner(FileSystem& files, const std::string& out) {
  CLEW_ASSIGN_OR_RETURN(bundle, BundleWriter::Create(files, out));
  CLEW_RETURN_IF_ERROR(WriteBundle(files, bundle.folder() + "/seed1"));
  CLEW_RETURN_IF_ERROR(WriteBundle(files, bundle.folder() + "/seed2"));
  return bundle.PublishInner("seed2");
}

TEST(BundleWriterTest, AnInnerBundleIsPublishedWholeOrNotAtAll) {
  EXPECT_GT(FailEachOperation(WriteByWayOfInner, [](const std::string&) {}),
            20);
  const Folder folder;
  const std::string out = folder / "b1.clew";
  ASSERT_TRUE(WriteByWayOfInner(PosixFileSystem(), out).has_value());
  ExpectComplete(out);
  EXPECT_FALSE(fs::exists(out + ".partial"));
}

TEST(BundleWriterTest, ABundleThatExistsOrIsBeingWrittenIsLeftAlone) {
  const Folder folder;
  const std::string out = folder / "b1.clew";
  {
    auto first = BundleWriter::Create(PosixFileSystem(), out);
    ASSERT_TRUE(first.has_value());
    const auto second = BundleWriter::Create(PosixFileSystem(), out);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(fs::exists(out + ".partial"));
  }
  EXPECT_FALSE(fs::exists(out + ".partial")) << "not published, so removed";
  ASSERT_TRUE(WriteBundle(PosixFileSystem(), out).has_value());
  EXPECT_FALSE(WriteBundle(PosixFileSystem(), out).has_value());
  ExpectComplete(out);
}

}  // namespace
}  // namespace clew::recorder
