// Goal: images of one build-id under two names are both copied; what is no
// regular file is refused at once, and a file that was replaced is told.
// Method: copies of a program of this host; a FIFO that nobody writes to.
#include "bundle/manifest/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/build_id.h"
#include "common/text/hex.h"
#include "recorder/images/describe_image.h"
#include "recorder/images/vdso.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using bundle::BundleImage;
using bundle::BundleWriter;
using bundle::CopyImages;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  ImagesTest() {
    std::string pattern = fs::temp_directory_path() / "clew-images-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::copy("/proc/self/exe", Path("one"));
    fs::copy("/proc/self/exe", Path("two"));
  }
  ~ImagesTest() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  BundleImage Describe(const std::string& name) const {
    auto image = DescribeImage(Path(name));
    EXPECT_TRUE(image) << image.error().message;
    return image.value_or(BundleImage());
  }

  std::string folder_;
};

TEST_F(ImagesTest, TwoNamesOfOneBuildAreBothCopied) {
  const std::vector<BundleImage> images = {Describe("one"), Describe("two"),
                                           Describe("one")};
  ASSERT_TRUE(images[0].has_build_id);
  ASSERT_EQ(images[0].build_id, images[1].build_id);
  auto bundle = BundleWriter::Create(PosixFileSystem(), Path("b"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  const Status copied = CopyImages(*bundle, images, OwnVdso());
  ASSERT_TRUE(copied) << copied.error().message;
  const std::string at =
      bundle->folder() + "/images/" + ToHex(images[0].build_id) + "/";
  EXPECT_EQ(fs::file_size(at + "one"), images[0].size_bytes);
  EXPECT_EQ(fs::file_size(at + "two"), images[0].size_bytes);
}

TEST_F(ImagesTest, TheVdsoIsCopiedFromOurOwnMemory) {
  const auto image = DescribeImage("[vdso]");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(image->has_build_id);
  auto bundle = BundleWriter::Create(PosixFileSystem(), Path("b"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  const Status copied = CopyImages(*bundle, {*image}, OwnVdso());
  ASSERT_TRUE(copied) << copied.error().message;
  const auto file = ReadWholeFile(bundle->folder() + "/images/" +
                                  ToHex(image->build_id) + "/_vdso_");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size(), image->size_bytes);
  // A whole ELF file, with the build-id that the kernel gave it.
  EXPECT_EQ(BuildIdOf(*file), image->build_id);
  EXPECT_NE(std::string_view(reinterpret_cast<const char*>(file->data()),
                             file->size())
                .find("__vdso_clock_gettime"),
            std::string_view::npos);
}

TEST_F(ImagesTest, AFileThatWasReplacedIsTold) {
  const BundleImage image = Describe("one");
  fs::remove(Path("one"));
  std::ofstream(Path("one")) << "something else";
  auto bundle = BundleWriter::Create(PosixFileSystem(), Path("b"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  const Status copied = CopyImages(*bundle, {image}, OwnVdso());
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message, HasSubstr("was replaced"));
}

TEST_F(ImagesTest, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const auto image = DescribeImage(Path("fifo"));
  ASSERT_FALSE(image);
  EXPECT_THAT(image.error().message, HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace clew::recorder
