// Goal: a file can include, by path from the root, only its own part and what
// the part names in USES; a part can use only parts added before it.
// Method: configures a project of two parts with cmake/clew.cmake in a
// temporary directory, once as allowed and once for each forbidden way.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace clew {
namespace {

class IncludeRuleTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("CLEW_SOURCE_DIR");
    if (source == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_SOURCE_DIR";
    }
    source_ = source;
    std::string pattern = testing::TempDir() + "clew-cmake-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    Write("CMakeLists.txt",
          "cmake_minimum_required(VERSION 3.25)\n"
          "project(x LANGUAGES CXX)\n"
          "set(CLEW_ALONE ON)\n"
          "include(" +
              source_ +
              "/cmake/clew.cmake)\n"
              "add_subdirectory(low)\nadd_subdirectory(high)\n");
    Write("low/a.h", "#include \"low/b.h\"\n#include <string>\n");
    Write("low/b.h", "");
    Write("low/CMakeLists.txt", "clew_component(low SOURCES a.h b.h)\n");
    Write("high/a.h", "#include \"low/a.h\"\n");
    Write("high/CMakeLists.txt", "clew_component(high SOURCES a.h USES low)\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  // True if CMake configures the project; what it said is in log_.
  bool Configures() {
    const std::string log = root_ + "/log";
    const int status = std::system(
        ("cmake -S " + root_ + " -B " + root_ + "/build >" + log + " 2>&1")
            .c_str());
    std::ifstream file(log);
    log_.assign(std::istreambuf_iterator<char>(file), {});
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  bool LogHas(const std::string& text) const {
    return log_.find(text) != std::string::npos;
  }

  std::string source_, root_, log_;
};

TEST_F(IncludeRuleTest, WhatUsesNamesIsAllowed) {
  EXPECT_TRUE(Configures()) << log_;
}

TEST_F(IncludeRuleTest, AnIncludeOutsideUsesIsRefused) {
  Write("high/CMakeLists.txt", "clew_component(high SOURCES a.h)\n");
  EXPECT_FALSE(Configures());
  EXPECT_TRUE(LogHas("not in USES")) << log_;
  EXPECT_TRUE(LogHas("low/a.h")) << log_;
}

TEST_F(IncludeRuleTest, AnIncludeOfALaterPartIsRefused) {
  Write("low/b.h", "  #  include \"high/a.h\"\n");
  EXPECT_FALSE(Configures());
  EXPECT_TRUE(LogHas("low: b.h: not in USES")) << log_;
}

TEST_F(IncludeRuleTest, AnIncludeOfAPartBelowOneThatUsesNamesIsRefused) {
  Write("low/sub/c.h", "");
  Write("low/sub/CMakeLists.txt", "clew_component(low/sub SOURCES c.h)\n");
  Write("low/CMakeLists.txt",
        "clew_component(low SOURCES a.h b.h)\nadd_subdirectory(sub)\n");
  Write("high/a.h", "#include \"low/sub/c.h\"\n");
  EXPECT_FALSE(Configures());
  EXPECT_TRUE(LogHas("high: a.h: not in USES")) << log_;
}

TEST_F(IncludeRuleTest, AFolderOfAPartIsOfIt) {
  Write("low/sub/c.h", "");
  Write("low/CMakeLists.txt", "clew_component(low SOURCES a.h b.h sub/c.h)\n");
  Write("high/a.h", "#include \"low/sub/c.h\"\n");
  EXPECT_TRUE(Configures()) << log_;
}

TEST_F(IncludeRuleTest, AnIncludeRelativeToTheFileIsRefused) {
  Write("low/a.h", "#include \"b.h\"\n");
  EXPECT_FALSE(Configures());
  EXPECT_TRUE(LogHas("not in USES")) << log_;
}

TEST_F(IncludeRuleTest, UsingALaterPartIsRefused) {
  Write("low/CMakeLists.txt",
        "clew_component(low SOURCES a.h b.h USES high)\n");
  EXPECT_FALSE(Configures());
  EXPECT_TRUE(LogHas("comes later or not at all")) << log_;
}

}  // namespace
}  // namespace clew
