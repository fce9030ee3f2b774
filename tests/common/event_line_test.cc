// Goal: an event is one line, and no value can forge a field or a line of it.
// Method: lines compared with hand-written ones; every byte as a value.

#include "common/text/event_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace clew {
namespace {

std::string LineOf(const std::string& value) {
  const std::vector<EventField> fields = {{"key", value}};
  return EventLine(Priority::kInfo, false, "e", fields);
}

TEST(EventLineTest, HasPriorityEventAndFields) {
  const std::vector<EventField> fields = {{"host", "web1"}, {"path", "/a:b"}};
  EXPECT_EQ(EventLine(Priority::kWarning, true, "refused", fields),
            "<4>event=refused host=web1 path=/a:b\n");
  EXPECT_EQ(EventLine(Priority::kWarning, false, "refused", {}),
            "event=refused\n");
}

TEST(EventLineTest, AValueThatIsNotPlainIsQuoted) {
  EXPECT_EQ(LineOf(""), "event=e key=\"\"\n");
  EXPECT_EQ(LineOf("a b"), "event=e key=\"a b\"\n");
  EXPECT_EQ(LineOf("a\"\\"), "event=e key=\"a\\\"\\\\\"\n");
  EXPECT_EQ(LineOf("x\n<3>event=forged"),
            "event=e key=\"x\\n<3>event=forged\"\n");
}

TEST(EventLineTest, NoByteBreaksTheLineOrAddsAField) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string line = LineOf(std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << byte;
    const std::string value = line.substr(std::string("event=e key=").size());
    const bool has_sign = value.find_first_of(" =") != std::string::npos;
    EXPECT_TRUE(!has_sign || value.front() == '"') << byte << ": " << line;
  }
}

}  // namespace
}  // namespace clew
