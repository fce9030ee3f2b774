// Goal: installing keeps what was there, removing puts it back, and neither
// overwrites what somebody else has set meanwhile.
// Method: files below a folder; the k-th operation of the file system fails.
#include "daemon/core_pattern.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/check.h"
#include "tests/daemon/support.h"
#include "tests/support/failing_files.h"

namespace clew::daemon {
namespace {

constexpr const char* kBefore = "|/lib/systemd/systemd-coredump %P %u";

class CorePatternTest : public testing::Test {
 protected:
  CorePatternTest() : paths_("/tmp") {
    // The pattern has room for a short path alone.
    root_ = std::filesystem::temp_directory_path().string() + "/cpXXXXXX";
    CLEW_CHECK(mkdtemp(root_.data()) != nullptr, "no folder {}", root_);
    paths_ = Paths(root_);
    test::WriteText(paths_.core_pattern, fmt::format("{}\n", kBefore));
    test::WriteText(paths_.core_handler, "");
    std::filesystem::permissions(paths_.core_handler,
                                 std::filesystem::perms::owner_all);
  }
  ~CorePatternTest() override { std::filesystem::remove_all(root_); }
  std::string Now() const { return *ReadCorePattern(paths_); }

  std::string root_;
  Paths paths_;
};

TEST_F(CorePatternTest, WhatWasThereComesBack) {
  const auto before = InstallCorePattern(PosixFileSystem(), paths_);
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_EQ(*before, kBefore);
  EXPECT_TRUE(IsOurPattern(paths_, Now()));
  EXPECT_EQ(test::ReadText(paths_.core_pattern_before),
            fmt::format("{}\n", kBefore));
  // Again: what was before is not lost.
  EXPECT_EQ(*InstallCorePattern(PosixFileSystem(), paths_), kBefore);
  EXPECT_EQ(*UninstallCorePattern(PosixFileSystem(), paths_), kBefore);
  EXPECT_EQ(Now(), kBefore);
  EXPECT_EQ(*UninstallCorePattern(PosixFileSystem(), paths_), "");
}

TEST_F(CorePatternTest, WhatOthersSetStays) {
  ASSERT_TRUE(InstallCorePattern(PosixFileSystem(), paths_).has_value());
  test::WriteText(paths_.core_pattern, "core.%p\n");
  const auto removed = UninstallCorePattern(PosixFileSystem(), paths_);
  ASSERT_FALSE(removed.has_value());
  EXPECT_EQ(removed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Now(), "core.%p");
  // Installed again, that is what was before.
  EXPECT_EQ(*InstallCorePattern(PosixFileSystem(), paths_), "core.%p");
}

TEST_F(CorePatternTest, WithoutTheHandlerNothingChanges) {
  std::filesystem::remove(paths_.core_handler);
  EXPECT_FALSE(InstallCorePattern(PosixFileSystem(), paths_).has_value());
  EXPECT_EQ(Now(), kBefore);
}

TEST_F(CorePatternTest, NeverOursWithoutANoteOfWhatWasBefore) {
  bool finished = false;
  for (int works = 0; !finished; ++works) {
    ASSERT_LT(works, 30) << "never ends";
    std::filesystem::remove(paths_.core_pattern_before);
    test::WriteText(paths_.core_pattern, fmt::format("{}\n", kBefore));
    clew::test::FailingFiles files(works);
    finished = InstallCorePattern(files, paths_).has_value();
    EXPECT_EQ(IsOurPattern(paths_, Now()), finished) << works;
    if (finished) {
      EXPECT_EQ(test::ReadText(paths_.core_pattern_before),
                fmt::format("{}\n", kBefore));
    }
  }
}

}  // namespace
}  // namespace clew::daemon
