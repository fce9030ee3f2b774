// Goal: a configuration file is taken as it is specified, and every mistake in
// it is refused with file and line.
// Method: pairs of text and outcome, one a rule.

#include "common/text/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clew {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConfigFile Parsed(std::string_view text) {
  auto file = ConfigFile::Parse(text, "a.conf");
  EXPECT_TRUE(file.has_value()) << file.error().message;
  return file ? *std::move(file) : ConfigFile();
}

std::string WhyNot(const Status& status) {
  return status ? "" : status.error().message;
}

TEST(ConfigFileTest, KeysAreFoundBySectionAndAbsentOnesChangeNothing) {
  ConfigFile file = Parsed(
      "# first\n\n a = 1 \n[one]\r\nb= two words # not a comment\r\n"
      "[two]\nb =\nlast = yes");
  std::string a = "?", one = "?", two = "?", absent = "as before";
  bool last = false;
  EXPECT_TRUE(file.Text("", "a", &a));
  EXPECT_TRUE(file.Text("one", "b", &one));
  EXPECT_TRUE(file.Text("two", "b", &two));
  EXPECT_TRUE(file.Text("two", "a", &absent));
  EXPECT_TRUE(file.Flag("two", "last", &last));
  EXPECT_EQ(a, "1");
  EXPECT_EQ(one, "two words # not a comment");
  EXPECT_EQ(two, "");
  EXPECT_EQ(absent, "as before");
  EXPECT_TRUE(last);
  EXPECT_THAT(file.sections(), ElementsAre("one", "two"));
  EXPECT_EQ(WhyNot(file.Finish()), "");
}

TEST(ConfigFileTest, WhatNobodyAskedForIsRefused) {
  ConfigFile file = Parsed("port = 1\n[x]\nprot = 2\n");
  uint64_t port = 0;
  EXPECT_TRUE(file.Number("", "port", 1, 9, &port));
  EXPECT_EQ(WhyNot(file.Finish()),
            "a.conf:3: \"prot\" is no key of [x]; known are port");
}

TEST(ConfigFileTest, MalformedLinesAreRefusedWithTheirNumber) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {
      {"a = 1\nb\n", "a.conf:2: \"b\" is neither"},
      {"= 1\n", "a.conf:1: \"= 1\" is neither"},
      {"a b = 1\n", "a.conf:1: \"a b = 1\" is neither"},
      {"[a\n", "a.conf:1: \"[a\" is no section"},
      {"[]\n", "a.conf:1: \"[]\" is no section"},
      {"[a]\n[b]\n[a]\n", "a.conf:3: section \"a\" is there twice"},
      {"a = 1\n\na = 2\n", "a.conf:3: a is there already, in line 1"},
  };
  for (const auto& [text, why] : cases) {
    const auto file = ConfigFile::Parse(text, "a.conf");
    ASSERT_FALSE(file.has_value()) << text;
    EXPECT_THAT(file.error().message, HasSubstr(why));
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ConfigFileTest, QuantitiesHaveUnitsAndLimits) {
  ConfigFile file = Parsed(
      "plain = 4096\nk = 64K\nt = 2T\nover = 99999999T\nbad = 1KB\n"
      "none =\nminus = -1\nday = 2d\nsmall = 3\nlarge = 11");
  uint64_t value = 7;
  const auto bytes = [&](const char* key) {
    return WhyNot(file.Bytes("", key, 0, UINT64_MAX, &value));
  };
  EXPECT_EQ(bytes("plain"), "");
  EXPECT_EQ(value, 4096u);
  EXPECT_EQ(bytes("k"), "");
  EXPECT_EQ(value, 65536u);
  EXPECT_EQ(bytes("t"), "");
  EXPECT_EQ(value, uint64_t{2} << 40);
  for (const char* key : {"over", "bad", "none", "minus"}) {
    EXPECT_THAT(bytes(key), HasSubstr("wanted bytes"));
  }
  EXPECT_EQ(value, uint64_t{2} << 40) << "changed by a failed read";
  EXPECT_TRUE(file.Seconds("", "day", 0, 1000000, &value));
  EXPECT_EQ(value, 172800u);
  EXPECT_THAT(WhyNot(file.Number("", "small", 4, 10, &value)),
              HasSubstr("a.conf:9: small is \"3\", wanted a number from 4"));
  EXPECT_FALSE(file.Number("", "large", 4, 10, &value));
  EXPECT_FALSE(file.Number("", "k", 4, 10, &value)) << "a unit, not asked for";
}

TEST(ConfigFileTest, WordsAndFlags) {
  ConfigFile file = Parsed("w =  a \t bc\nempty =\non = off\nbad = maybe\n");
  std::vector<std::string> words = {"x"};
  bool on = true;
  EXPECT_TRUE(file.Words("", "w", &words));
  EXPECT_THAT(words, ElementsAre("a", "bc"));
  EXPECT_TRUE(file.Words("", "empty", &words));
  EXPECT_THAT(words, ElementsAre());
  EXPECT_TRUE(file.Flag("", "on", &on));
  EXPECT_FALSE(on);
  EXPECT_EQ(WhyNot(file.Flag("", "bad", &on)),
            "a.conf:4: bad is \"maybe\", wanted yes or no");
}

TEST(ConfigFileTest, AFileThatIsNotThereIsNamed) {
  const auto file = ConfigFile::Read("/nonexistent/clew.conf");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::kSystem);
  EXPECT_THAT(file.error().message, HasSubstr("/nonexistent/clew.conf"));
}

}  // namespace
}  // namespace clew
