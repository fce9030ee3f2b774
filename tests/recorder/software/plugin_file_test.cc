// Goal: the plugin is found in the places that are named, best first, and what
// is not there is refused with every place that was tried.
// Method: $CLEW_PLUGIN on files in a temporary directory; without it, files
// beside this test program, which is what /proc/self/exe names, or rather
// beside a copy of it in that directory.
#include "recorder/software/plugin_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

class PluginFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* chosen = std::getenv("CLEW_PLUGIN"); chosen != nullptr) {
      before_ = chosen;
    }
    unsetenv("CLEW_PLUGIN");
    std::string pattern = testing::TempDir() + "clew-plugin-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    fs::remove_all(root_);
    if (before_) {
      setenv("CLEW_PLUGIN", before_->c_str(), 1);
    }
  }

  fs::path root_;
  std::optional<std::string> before_;
};

TEST_F(PluginFileTest, TheEnvironmentNamesItAlone) {
  const std::string wanted = root_ / "plugin.so";
  setenv("CLEW_PLUGIN", wanted.c_str(), 1);
  EXPECT_EQ(PluginPlaces(), std::vector<std::string>{wanted});
  const auto absent = FindPlugin();
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(absent.error().message, testing::HasSubstr(wanted));
  std::ofstream(wanted).put('x');
  EXPECT_EQ(FindPlugin().value_or(""), wanted);
}

TEST_F(PluginFileTest, AFolderIsNoPlugin) {
  setenv("CLEW_PLUGIN", root_.c_str(), 1);
  EXPECT_FALSE(FindPlugin());
}

TEST_F(PluginFileTest, ARelativeNameIsMadeAbsolute) {
  std::ofstream(root_ / "plugin.so").put('x');
  const fs::path here = fs::current_path();
  fs::current_path(root_);
  setenv("CLEW_PLUGIN", "plugin.so", 1);
  EXPECT_EQ(FindPlugin().value_or(""), root_ / "plugin.so");
  fs::current_path(here);
}

constexpr const char* kIsCopy = "CLEW_PLUGIN_FILE_TEST_IS_COPY";

TEST_F(PluginFileTest, ElseItIsBesideTheProgramOrInItsLibrary) {
  if (std::getenv(kIsCopy) == nullptr) {
    const fs::path copy = root_ / "bin" / "copy";
    fs::create_directory(copy.parent_path());
    fs::copy_file("/proc/self/exe", copy);
    setenv(kIsCopy, "1", 1);
    const auto* const test = testing::UnitTest::GetInstance();
    const int status = std::system((copy.string() + " --gtest_filter=*." +
                                    test->current_test_info()->name())
                                       .c_str());
    unsetenv(kIsCopy);
    EXPECT_EQ(status, 0);
    return;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string beside = folder / "clew-qemu-plugin.so";
  const std::string library =
      folder.parent_path() / "lib/clew/clew-qemu-plugin.so";
  EXPECT_EQ(PluginPlaces(), (std::vector<std::string>{beside, library}));
  const auto absent = FindPlugin();
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, testing::HasSubstr(beside));
  EXPECT_THAT(absent.error().message, testing::HasSubstr(library));
  std::ofstream(beside).put('x');
  EXPECT_EQ(FindPlugin().value_or(""), beside);
}

}  // namespace
}  // namespace clew::recorder
