// Goal: a mapped file is found by what /proc/self/maps shows of it.
// Method: the kernel itself shows files that are mapped here.
#include "common/os/maps_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/os/fd.h"

namespace clew {
namespace {

class MapsPathTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "clew-maps-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Make(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << "text";
    return folder_ + "/" + name;
  }

  // What maps shows of the file at `path`, mapped for the time of the call.
  std::string Shown(const std::string& path) const {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    void* at = mmap(nullptr, 4, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    std::ifstream maps("/proc/self/maps");
    std::string found;
    for (std::string line; found.empty() && std::getline(maps, line);) {
      const size_t begin = line.find(folder_);
      found = begin == std::string::npos ? "" : line.substr(begin);
    }
    munmap(at, 4);
    return found;
  }

  static uint64_t InodeOf(const std::string& path) {
    struct stat info = {};
    return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  }

  std::string folder_;
};

TEST_F(MapsPathTest, FindsNamesWithNewlinesAndBackslashes) {
  for (const char* name :
       {"plain", "new\nline", "\n\n", "back\\012slash", "other\\011"}) {
    const std::string path = Make(name);
    const std::string shown = Shown(path);
    ASSERT_FALSE(shown.empty()) << name;
    EXPECT_EQ(PathOfMapping(shown, InodeOf(path)), path);
  }
}

TEST_F(MapsPathTest, TheInodeDecidesWhereBothFilesAreThere) {
  const std::string newline = Make("a\nb");
  const std::string backslash = Make("a\\012b");
  ASSERT_EQ(Shown(newline), Shown(backslash));
  const std::string shown = Shown(newline);
  EXPECT_EQ(PathOfMapping(shown, InodeOf(newline)), newline);
  EXPECT_EQ(PathOfMapping(shown, InodeOf(backslash)), backslash);
}

TEST_F(MapsPathTest, WhatIsNotThereStaysAsItIsShown) {
  EXPECT_EQ(PathOfMapping("/gone\\012 (deleted)", 1), "/gone\\012 (deleted)");
  EXPECT_EQ(PathOfMapping("", 0), "");
}

TEST_F(MapsPathTest, AnUnlinkedFileHasTheKernelsMarkBehindItsPath) {
  const std::string path = Make("a (deleted) b");
  const std::string shown = Shown(path);
  EXPECT_FALSE(IsDeleted(shown));
  EXPECT_EQ(WithoutDeleted(shown), path);
  EXPECT_TRUE(IsDeleted(path + " (deleted)"));
  EXPECT_EQ(WithoutDeleted(path + " (deleted)"), path);
  EXPECT_EQ(WithoutDeleted(""), "");
}

}  // namespace
}  // namespace clew
