// Goal: what a sanitizer or a panic reports is told from what else programs put
// out to standard error. Method: lines as GCC 12, clang 19 and Go 1.19 print
// them, whole, within others, and cut anywhere; and what is like them. Oracle:
// written down.
#include "common/linux/failure_report.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace clew {
namespace {

bool Is(std::string_view text) {
  return IsFailureReport(
      {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

struct Report {
  std::string_view text;
  size_t needed;  // bytes of it by which it is known
};

size_t Behind(std::string_view text, std::string_view part) {
  return text.find(part) + part.size();
}

Report Of(std::string_view text, std::string_view part) {
  return {text, Behind(text, part)};
}

TEST(FailureReportTest, ReportsAreKnownOnceTheirNameIsThere) {
  const Report reports[] = {
      Of("==7==ERROR: AddressSanitizer: heap-use-after-free on address "
         "0x602000000010 at pc 0x55555555526f\n",
         "Sanitizer: "),
      Of("=================================================================\n"
         "==7==ERROR: AddressSanitizer: SEGV on unknown address\n",
         "Sanitizer: "),
      Of("AddressSanitizer: CHECK failed: asan_descriptions.cpp:176\n",
         "Sanitizer: "),
      Of("WARNING: ThreadSanitizer: data race (pid=7)\n", "Sanitizer: "),
      Of("==7==WARNING: MemorySanitizer: use-of-uninitialized-value\n",
         "Sanitizer: "),
      Of("SUMMARY: AddressSanitizer: 10 byte(s) leaked in 1 allocation(s).\n",
         "Sanitizer: "),
      Of("bank.c:7:12: runtime error: division by zero\n", ": runtime error: "),
      Of("SUMMARY: libFuzzer: timeout\n", "libFuzzer: "),
  };
  for (const Report& report : reports) {
    for (size_t size = 0; size <= report.text.size(); ++size) {
      ASSERT_EQ(Is(report.text.substr(0, size)), size >= report.needed)
          << report.text.substr(0, size);
    }
  }
}

TEST(FailureReportTest, PanicsBeginWithAPiece) {
  EXPECT_TRUE(Is("panic: "));
  EXPECT_TRUE(Is("fatal error: "));
}

TEST(FailureReportTest, NothingElseIsOne) {
  for (const char* text : {
           "",
           "\n",
           "LeakSanitizer has encountered a fatal error.\n",
           "AddressSanitizer:DEADLYSIGNAL\n",
           "panic: runtime error: index out of range [5] with length 3\n",
           ": runtime error: division by zero\n",
           "panic: no coffee\n",
           "bank.c:1:10: fatal error: bank.h: No such file or directory\n",
           "SUMMARY: 3 tests failed\n",
           "bank: bank.c:62: main: Assertion `a == b' failed.\n",
       }) {
    EXPECT_FALSE(Is(text)) << text;
  }
}

}  // namespace
}  // namespace clew
