// Goal: a scratch folder is new, private, where TMPDIR says, and goes with all
// in it; a TMPDIR that is not a folder is an error.
#include "common/os/scratch_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace clew {
namespace {

namespace fs = std::filesystem;

// TMPDIR while this lives.
class TemporaryFilesIn {
 public:
  explicit TemporaryFilesIn(const std::string& folder) {
    if (const char* before = getenv("TMPDIR")) {
      before_ = before;
    }
    setenv("TMPDIR", folder.c_str(), 1);
  }
  TemporaryFilesIn(const TemporaryFilesIn&) = delete;
  TemporaryFilesIn& operator=(const TemporaryFilesIn&) = delete;
  ~TemporaryFilesIn() {
    before_ ? setenv("TMPDIR", before_->c_str(), 1) : unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_;
};

TEST(ScratchFolderTest, IsPrivateAndGoesWithAllInIt) {
  std::string path;
  {
    auto made = ScratchFolder::Make("clew-test");
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const ScratchFolder folder = std::move(*made);
    path = folder.path();
    EXPECT_TRUE(fs::path(path).filename().string().starts_with("clew-test-"));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    fs::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/c") << "x";
    const auto other = ScratchFolder::Make("clew-test");
    ASSERT_TRUE(other.has_value());
    EXPECT_NE(other->path(), path);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolderTest, IsWhereTmpdirSaysOrAnError) {
  const auto root = ScratchFolder::Make("clew-test");
  ASSERT_TRUE(root.has_value());
  {
    const TemporaryFilesIn here(root->path());
    const auto inner = ScratchFolder::Make("inner");
    ASSERT_TRUE(inner.has_value()) << inner.error().message;
    EXPECT_EQ(fs::path(inner->path()).parent_path(), root->path());
  }
  const TemporaryFilesIn nowhere(root->path() + "/none");
  const auto none = ScratchFolder::Make("clew-test");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kSystem);
  EXPECT_NE(none.error().message.find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace clew
