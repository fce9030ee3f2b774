// Goal: every request survives the round trip; anything else is refused with a
// message that names what is wrong.
#include "daemon/control/protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clew::daemon {
namespace {

TEST(ProtocolTest, EveryRequestSurvivesTheRoundTrip) {
  const std::vector<Request> requests = {
      StatusRequest(),
      UnitsRequest(),
      ReloadRequest(),
      RetryRequest(),
      RetryRequest{"a.service~1~2.clew"},
      SnapshotRequest{.process = 4711, .unit = "", .end = false, .reason = "é"},
      SnapshotRequest{
          .process = 0, .unit = "a.service", .end = true, .reason = "\"\\"},
      CoreRequest{.process = INT32_MAX,
                  .thread = 2,
                  .signal = 64,
                  .time_s = INT64_MAX,
                  .comm = "a b"},
      CoreDoneRequest{.bytes = UINT64_MAX, .whole = true},
  };
  for (const Request& request : requests) {
    const std::string line = FormatRequest(request);
    ASSERT_TRUE(line.ends_with('\n'));
    const auto parsed = ParseRequest(line.substr(0, line.size() - 1));
    ASSERT_TRUE(parsed.has_value()) << line << parsed.error().message;
    EXPECT_EQ(*parsed, request) << line;
  }
}

TEST(ProtocolTest, WhatIsNoRequestIsRefused) {
  const std::vector<std::string> lines = {
      "",
      "{",
      "[]",
      "{}",
      R"({"do":1})",
      R"({"do":"dance"})",
      R"({"do":"status","more":1})",
      R"({"do":"snapshot"})",
      R"({"do":"snapshot","pid":1,"unit":"a"})",
      R"({"do":"snapshot","pid":-1})",
      R"({"do":"snapshot","pid":2147483648})",
      R"({"do":"snapshot","pid":1.5})",
      R"({"do":"snapshot","pid":"1"})",
      R"({"do":"snapshot","unit":"a","end":1})",
      R"({"do":"snapshot","unit":"a\n"})",
      R"({"do":"snapshot","unit":")" + std::string(kTextBytesMax + 1, 'a') +
          "\"}",
      R"({"do":"core","tid":1})",
      R"({"do":"core","pid":1,"signal":6})",
      R"({"do":"core","pid":1,"tid":1,"signal":65})",
      R"({"do":"core","pid":1,"tid":1,"signal":0})",
      R"({"do":"core-done","bytes":-1})",
      std::string(kRequestBytesMax, ' '),
      std::string(kRequestBytesMax - 2, '['),
  };
  for (const std::string& line : lines) {
    const auto parsed = ParseRequest(line);
    ASSERT_FALSE(parsed.has_value()) << line;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << line;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(ProtocolTest, AnErrorArrivesAsWhatItIs) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kCorruptInput,
        ErrorCode::kUnsupported, ErrorCode::kSystem, ErrorCode::kLimit}) {
    const auto reply = ParseReply(ErrorReply({code, "a \"b\" \xff"}));
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, code);
    EXPECT_EQ(reply.error().message, "a \"b\" \xef\xbf\xbd");
  }
  EXPECT_TRUE(ParseReply(OkReply()).has_value());
  for (const char* line : {"", "{}", "true", R"({"ok":"yes"})"}) {
    EXPECT_FALSE(ParseReply(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace clew::daemon
