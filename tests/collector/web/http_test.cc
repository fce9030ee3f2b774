// Goal: a request is what a strict reading of RFC 9112 says, or refused; an
// answer confines what a browser does with it.
// Method: all escapes exhaustively, then cases, each refused head being a good
// one with one thing wrong.

#include "collector/web/http.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clew::collector::web {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Head(const std::string& line, const std::string& headers) {
  return line + "\r\nHost: localhost\r\n" + headers + "\r\n";
}

// "" and nothing if it is refused.
Target ParsedTarget(const std::string& text) {
  const auto target = ParseTarget(text);
  EXPECT_TRUE(target.has_value()) << text;
  return target.value_or(Target());
}

Request Accepted(const std::string& head) {
  const ParsedHead parsed = ParseHead(head);
  EXPECT_TRUE(parsed.request.has_value()) << parsed.refusal.reason;
  return parsed.request.value_or(Request());
}

TEST(TargetTest, EveryEscapeIsItsByteOrRefused) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto target =
        ParseTarget(fmt::format("/%{:02x}?q=%{:02X}", byte, byte));
    const bool is_control = byte < 0x20 || byte == 0x7f;
    ASSERT_EQ(target.has_value(), !is_control) << byte;
    if (target) {
      const std::string text(1, static_cast<char>(byte));
      EXPECT_EQ(target->path, "/" + text);
      EXPECT_EQ(target->query.at("q"), text);
    }
  }
}

TEST(TargetTest, QueriesAreFormsAndPathsAreNot) {
  const Target target = ParsedTarget("/a+b?q=a+b%2Bc&&empty=&none&q=second");
  EXPECT_EQ(target.path, "/a+b");
  EXPECT_EQ(target.query, (std::map<std::string, std::string>{
                              {"q", "a b+c"}, {"empty", ""}, {"none", ""}}));
}

TEST(TargetTest, BrokenOnesAreRefused) {
  for (const char* text : {"", "a", "*", "http://localhost/", "/%", "/%4",
                           "/%4g", "/?a=%zz", "/?%=1", "/%00"}) {
    EXPECT_FALSE(ParseTarget(text).has_value()) << text;
  }
  std::string many = "/?";
  for (size_t i = 0; i < kQueryFieldsMax; ++i) {
    many += fmt::format("f{}=1&", i);
  }
  EXPECT_TRUE(ParseTarget(many).has_value());
  EXPECT_FALSE(ParseTarget(many + "last=1").has_value());
}

TEST(TargetTest, WhatIsEncodedComesBack) {
  std::string all;
  for (int byte = 0x20; byte < 256; ++byte) {
    if (byte != 0x7f) {
      all += static_cast<char>(byte);
    }
  }
  const Target target =
      ParsedTarget("/" + PercentEncode(all) + "?q=" + PercentEncode(all));
  EXPECT_EQ(target.path, "/" + all);
  EXPECT_EQ(target.query, (std::map<std::string, std::string>{{"q", all}}));
}

TEST(HeadTest, GetAndHead) {
  const Request get = Accepted(Head("GET /x?y=1 HTTP/1.1", "A: b\r\n"));
  EXPECT_FALSE(get.head_only);
  EXPECT_TRUE(get.keep_alive);
  EXPECT_EQ(get.host, "localhost");
  EXPECT_EQ(get.target.path, "/x");
  const Request head =
      Accepted(Head("HEAD / HTTP/1.1", "Connection: Close\r\n"));
  EXPECT_TRUE(head.head_only);
  EXPECT_FALSE(head.keep_alive);
  EXPECT_FALSE(Accepted(Head("GET / HTTP/1.0", "")).keep_alive);
}

TEST(HeadTest, AnythingDoubtfulIsRefused) {
  struct Case {
    int status;
    std::string head;
  };
  const Case cases[] = {
      {400, "\r\n"},
      {400, Head("GET /", "")},
      {400, Head("GET  / HTTP/1.1", "")},
      {400, Head("GET / / HTTP/1.1", "")},
      {400, Head("GET\t/ HTTP/1.1", "")},
      {400, Head("GET relative HTTP/1.1", "")},
      {505, Head("GET / HTTP/2.0", "")},
      {505, Head("GET / http/1.1", "")},
      {405, Head("POST / HTTP/1.1", "")},
      {405, Head("get / HTTP/1.1", "")},
      {400, Head("GET / HTTP/1.1", "no colon\r\n")},
      {400, Head("GET / HTTP/1.1", "name : value\r\n")},
      {400, Head("GET / HTTP/1.1", " folded: value\r\n")},
      {400, Head("GET / HTTP/1.1", ": value\r\n")},
      {400, Head("GET / HTTP/1.1", "a: b\nc: d\r\n")},
      {400, Head("GET / HTTP/1.1", "Host: second\r\n")},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\n"},
      {413, Head("GET / HTTP/1.1", "Content-Length: 1\r\n")},
      {413, Head("GET / HTTP/1.1", "Content-Length: 00\r\n")},
      {413, Head("GET / HTTP/1.1", "transfer-encoding: chunked\r\n")},
  };
  for (const Case& one : cases) {
    const ParsedHead parsed = ParseHead(one.head);
    EXPECT_FALSE(parsed.request.has_value()) << one.head;
    EXPECT_EQ(parsed.refusal.status, one.status) << one.head;
    EXPECT_FALSE(parsed.refusal.reason.empty());
  }
}

TEST(HostTest, OnlyNamesThatNobodyElseControls) {
  const std::vector<std::string> names = {"Clew.example"};
  for (const char* good :
       {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:80", "[::1]",
        "10.1.2.3", "clew.example", "clew.EXAMPLE:443"}) {
    EXPECT_TRUE(IsExpectedHost(good, names)) << good;
  }
  for (const char* bad : {"", "evil.example", "clew.example.evil",
                          "127.0.0.1.evil.example", "localhost.evil", "::1",
                          "[evil.example]", "fe80", "[::1", "a@localhost"}) {
    EXPECT_FALSE(IsExpectedHost(bad, names)) << bad;
  }
}

TEST(ResponseTest, SaysWhatABrowserMayDo) {
  const Response response{.content_type = "text/html; charset=utf-8",
                          .body = "body"};
  const std::string text = FormatResponse(response, false, true, 784111777);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\n"));
  // The example of RFC 9110, "Date/Time Formats".
  EXPECT_THAT(text, HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  EXPECT_THAT(text, HasSubstr("Content-Security-Policy: default-src 'none'; "
                              "style-src 'self'; "));
  EXPECT_THAT(text, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(text, HasSubstr("Referrer-Policy: no-referrer\r\n"));
  EXPECT_THAT(text, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(text, testing::EndsWith("\r\n\r\nbody"));
  const std::string head = FormatResponse(response, true, false, 0);
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(head, testing::EndsWith("\r\n\r\n"));
}

}  // namespace
}  // namespace clew::collector::web
