// Goal: a line of the log is one line whatever a stranger put into it, and an
// event that repeats is counted.
// Method: what was written, read back.

#include "collector/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace clew::collector {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { std::fclose(file_); }
  std::string Written() {
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    EXPECT_EQ(std::fseek(file_, 0, SEEK_SET), 0);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }
  std::FILE* file_ = std::tmpfile();
  uint64_t now_s_ = 1000;
};

TEST_F(LogTest, ALineHasPriorityEventAndQuotedFields) {
  Log log(file_, true, [this] { return now_s_; });
  log.Write(Log::Priority::kWarning, "refused",
            {{"host", "web1"}, {"message", "a \"b\"\n<3>event=forged"}});
  EXPECT_EQ(Written(),
            "<4>event=refused host=web1 message=\"a \\\"b\\\"\\n<3>event=forged"
            "\"\n");
}

TEST_F(LogTest, AConditionIsWrittenOnceAndThenCounted) {
  Log log(file_, false, [this] { return now_s_; });
  for (int i = 0; i < 5; ++i) {
    log.WriteOnce(Log::Priority::kWarning, "refused", "quota web1", {});
  }
  log.WriteOnce(Log::Priority::kWarning, "refused", "quota web2", {});
  now_s_ += Log::kRepeatPeriod_s;
  log.WriteOnce(Log::Priority::kWarning, "refused", "quota web1", {});
  EXPECT_EQ(Written(),
            "event=refused\nevent=refused\nevent=refused left_out=4\n");
}

}  // namespace
}  // namespace clew::collector
