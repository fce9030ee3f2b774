// Goal: what pages and figures are made of: escaped text, sizes, times, words
// for a shell, figures for Prometheus.
// Method: exhaustive over small texts where there is an oracle (the tokenizer
// of the tests, the shell), cases elsewhere.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "collector/web/format.h"
#include "collector/web/html.h"
#include "collector/web/metrics.h"
#include "common/text/shell_quote.h"
#include "tests/collector/web/html_tokens.h"

namespace clew::collector::web {
namespace {

using testing::HasSubstr;

TEST(EscapeTest, EveryTextOfThreeDangerousCharactersIsText) {
  const std::string kPieces = "<>&\"'/=a! -;#\n`";
  for (const char a : kPieces) {
    for (const char b : kPieces) {
      for (const char c : kPieces) {
        const std::string text = {a, b, c};
        HtmlWriter html;
        html.Element("p", {{"title", text}}, text);
        const std::string page = html.Take();
        const Tokens tokens = TokensOf(page);
        ASSERT_EQ(tokens.broken, "") << page;
        ASSERT_EQ(tokens.tags.size(), 2u) << page;
        ASSERT_EQ(tokens.tags[0].attributes.size(), 1u) << page;
        ASSERT_EQ(tokens.tags[0].attributes[0].second, text);
        ASSERT_THAT(tokens.text, HasSubstr("\n" + text + "\n"));
      }
    }
  }
}

TEST(EscapeTest, WhatIsNotSeenIsShown) {
  EXPECT_EQ(EscapeHtml("a\x01"
                       "b"),
            "a\\u{1}b");
  EXPECT_EQ(EscapeHtml("\xe2\x80\xae"), "\\u{202e}");
  EXPECT_EQ(EscapeHtml("\xe2\x81\xa6"), "\\u{2066}");
  EXPECT_EQ(EscapeHtml("\xc2\x85"), "\\u{85}");
  EXPECT_EQ(EscapeHtml("\x7f"), "\\u{7f}");
  EXPECT_EQ(EscapeHtml("\xe7\xb7\x9a \xf0\x9f\xa7\xb6"),
            "\xe7\xb7\x9a \xf0\x9f\xa7\xb6");
}

// Every sequence of two bytes, and those of three and four that the standard's
// table names as its edges.
TEST(EscapeTest, OnlyUtf8ComesOut) {
  EXPECT_EQ(EscapeHtml("\xff"), "\\xff");
  EXPECT_EQ(EscapeHtml("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(EscapeHtml("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");  // overlong
  EXPECT_EQ(EscapeHtml("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(EscapeHtml("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(EscapeHtml("\xe7\xb7"), "\\xe7\\xb7");  // cut off
  for (int a = 0x80; a < 256; ++a) {
    for (int b = 0x80; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b)};
      const bool is_utf8 = a >= 0xc2 && a <= 0xdf && b < 0xc0;
      const bool is_seen = is_utf8 && EscapeHtml(text) == text;
      const bool has_high =
          std::ranges::any_of(EscapeHtml(text), [](char c) { return c < 0; });
      ASSERT_EQ(has_high, is_seen) << a << " " << b;
    }
  }
}

TEST(EscapeTest, LongTextIsCutAndSaysSo) {
  const std::string text(kTextBytesMax + 10, 'x');
  EXPECT_THAT(EscapeHtml(text), HasSubstr("(10 more bytes)"));
  EXPECT_EQ(EscapeHtml(text.substr(10)), text.substr(10));
}

TEST(FormatTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(5u << 20), "5.0 MiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(FormatTest, Counts) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

TEST(FormatTest, Times) {
  EXPECT_EQ(FormatTime(0), "1970-01-01 00:00:00");
  EXPECT_EQ(FormatTime(1795176000), "2026-11-20 12:00:00");
  EXPECT_EQ(FormatTimeIso(1795176000), "2026-11-20T12:00:00Z");
  for (const int64_t time_s : {std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(FormatTime(time_s), HasSubstr("since 1970"));
    (void)FormatAge(time_s, 0);  // no overflow; the sanitizer would say so
    (void)FormatAge(0, time_s);
  }
}

TEST(FormatTest, Ages) {
  constexpr int64_t kNow = 1'000'000;
  EXPECT_EQ(FormatAge(kNow, kNow), "just now");
  EXPECT_EQ(FormatAge(kNow + 30, kNow), "just now");
  EXPECT_EQ(FormatAge(kNow - 60, kNow), "1 min ago");
  EXPECT_EQ(FormatAge(kNow - 3600, kNow), "1 h ago");
  EXPECT_EQ(FormatAge(kNow - 47 * 3600, kNow), "47 h ago");
  EXPECT_EQ(FormatAge(kNow - 48 * 3600, kNow), "2 days ago");
  EXPECT_EQ(FormatAge(kNow + 7200, kNow), "in 2 h");
}

// The shell itself says what a quoted word is.
TEST(FormatTest, ShellQuoting) {
  for (const std::string& text :
       {std::string("plain"), std::string("a b"), std::string("$(id)"),
        std::string("`id`"), std::string("it's"), std::string("-n"),
        std::string("*"), std::string("a\\b"), std::string("\"; id; \""),
        std::string("")}) {
    const std::string command = "printf '[%s]' " + ShellQuote(text);
    FILE* pipe = popen(command.c_str(), "re");
    ASSERT_NE(pipe, nullptr);
    std::string out(100, '\0');
    out.resize(fread(out.data(), 1, out.size(), pipe));
    EXPECT_EQ(pclose(pipe), 0);
    // printf takes "-n" for no option behind its format.
    EXPECT_EQ(out, "[" + text + "]");
  }
  EXPECT_EQ(ShellQuote("collector.example:7447"), "collector.example:7447");
}

TEST(MetricsTest, SamplesOfOneNameStayTogether) {
  MetricsWriter metrics;
  metrics.Gauge("a", "Of a.", 1, {{"x", "1"}});
  metrics.Counter("b_total", "Of b.", 2.5);
  metrics.Gauge("a", "Of a.", 3, {{"x", "q\"\\\n"}, {"y", ""}});
  EXPECT_EQ(metrics.Text(),
            "# HELP a Of a.\n# TYPE a gauge\na{x=\"1\"} 1\n"
            "a{x=\"q\\\"\\\\\\n\",y=\"\"} 3\n"
            "# HELP b_total Of b.\n# TYPE b_total counter\nb_total 2.5\n");
}

TEST(MetricsTest, HistogramsAddUp) {
  MetricsWriter metrics;
  const double bounds[] = {0.1, 1};
  const uint64_t counts[] = {3, 2, 1};
  metrics.Histogram("h", "Of h.", bounds, counts, 7.25);
  EXPECT_EQ(metrics.Text(),
            "# HELP h Of h.\n# TYPE h histogram\nh_bucket{le=\"0.1\"} 3\n"
            "h_bucket{le=\"1\"} 5\nh_bucket{le=\"+Inf\"} 6\nh_sum 7.25\n"
            "h_count 6\n");
}

TEST(MetricsTest, RequestsAreCountedByStatusAndTime) {
  RequestStats stats;
  stats.Count(200, 0.001);  // a bound is in its own bucket
  stats.Count(200, 0.3);
  stats.Count(404, 100);
  MetricsWriter metrics;
  stats.WriteTo(metrics);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("clew_web_requests_total{status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("clew_web_requests_total{status=\"404\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("clew_web_request_seconds_bucket{le=\"0.001\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("clew_web_request_seconds_bucket{le=\"0.5\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("clew_web_request_seconds_bucket{le=\"+Inf\"} 3\n"));
}

TEST(MetricsDeathTest, NamesAreOurs) {
  MetricsWriter metrics;
  EXPECT_DEATH(metrics.Gauge("a b", "Help.", 1), "no name of a metric");
  EXPECT_DEATH(metrics.Counter("a", "Help.", 1), "does not end in _total");
}

}  // namespace
}  // namespace clew::collector::web
