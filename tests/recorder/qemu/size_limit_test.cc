// Goal: files that count towards a size limit take no more than it together and
// one buffer each; once over, and once the disk refuses, they are empty and do
// not fail.
// Method: files in a scratch folder; a disk that refuses is RLIMIT_FSIZE.
#include "recorder/qemu/size_limit.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "recorder/qemu/raw_file.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

class SizeLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clew-size-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(SizeLimitTest, FilesOverItAreEmptiedAndNoneIsMadeAnyMore) {
  SizeLimit limit(300'000);
  RawFile a = *RawFile::Create(At("a"), &limit);
  RawFile b = *RawFile::Create(At("b"), &limit);
  const std::string part(100'000, 'x');
  a.Append(part);
  b.Append(part);
  EXPECT_FALSE(limit.dropped());
  EXPECT_EQ(fs::file_size(At("a")) + fs::file_size(At("b")), 200'000u);
  a.Append(part);
  EXPECT_TRUE(limit.dropped());
  EXPECT_NE(limit.why().find("300000 bytes"), std::string::npos) << limit.why();
  EXPECT_EQ(fs::file_size(At("a")), 0u);
  EXPECT_TRUE(b.Close().has_value());
  EXPECT_EQ(fs::file_size(At("b")), 0u);
  RawFile c = *RawFile::Create(At("c"), &limit);
  c.Append(part);
  EXPECT_TRUE(c.Close().has_value());
  EXPECT_FALSE(fs::exists(At("c")));
  ASSERT_TRUE(a.BeginAnew().has_value());
  a.Append("what is there");
  EXPECT_TRUE(a.Close().has_value());
  EXPECT_EQ(fs::file_size(At("a")), 13u);
}

TEST_F(SizeLimitTest, FilesCostMoreThanTheirBytes) {
  SizeLimit limit(100'000);
  int files = 0;
  while (!limit.dropped() && files < 1000) {
    (void)RawFile::Create(At(std::to_string(files++)), &limit);
  }
  EXPECT_EQ(files, 25);
}

TEST_F(SizeLimitTest, ADiskThatRefusesDropsTheRecording) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 50'000;
  SizeLimit limit(0);
  RawFile counted = *RawFile::Create(At("a"), &limit);
  RawFile alone = *RawFile::Create(At("b"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  counted.Append(std::string(100'000, 'x'));
  alone.Append(std::string(100'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(limit.dropped());
  EXPECT_NE(limit.why().find("cannot write"), std::string::npos);
  EXPECT_EQ(fs::file_size(At("a")), 0u);
  EXPECT_TRUE(counted.Close().has_value());
  EXPECT_FALSE(alone.Close().has_value());
}

}  // namespace
}  // namespace clew::recorder
