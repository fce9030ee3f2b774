#ifndef CLEW_COMMON_LINUX_FAILURE_REPORT_H_
#define CLEW_COMMON_LINUX_FAILURE_REPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace clew {

// Of what a program puts out by one call IsFailureReport wants so many bytes.
inline constexpr size_t kReportBytesMax = 512;

// Whether `text`, which a program put out to its standard error by one call,
// says that it fails: a sanitizer's report, or how a panic of Go begins, which
// is written in pieces ("panic: ", "fatal error: ").
//
//   ==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
//   WARNING: ThreadSanitizer: data race (pid=1)
//   bank.c:7:12: runtime error: division by zero
//   SUMMARY: libFuzzer: timeout
//
// Sources: LLVM compiler-rt, lib/asan/asan_report.cpp, ScopedInErrorReport;
// lib/tsan/rtl/tsan_report.cpp, PrintReport; lib/ubsan/ubsan_diag.cpp, Diag;
// lib/fuzzer/FuzzerLoop.cpp; Go, runtime/panic.go, printpanics, throw.
inline bool IsFailureReport(std::span<const uint8_t> text) {
  constexpr std::string_view kPanic = "panic: ";
  constexpr std::string_view kThrow = "fatal error: ";
  constexpr std::string_view kName = "Sanitizer: ";
  constexpr std::string_view kFuzzer = "SUMMARY: libFuzzer: ";
  constexpr std::string_view kUndefined = ": runtime error: ";
  const auto find = [&](const std::string_view& wanted) {
    return std::search(
        text.begin(), text.end(), wanted.begin(), wanted.end(),
        [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
  };
  const auto is = [&](const std::string_view& wanted) {
    return text.size() == wanted.size() && find(wanted) == text.begin();
  };
  if (is(kPanic) || is(kThrow) || find(kName) != text.end() ||
      find(kFuzzer) != text.end()) {
    return true;
  }
  const auto error = find(kUndefined);
  return error != text.end() && error != text.begin() && error[-1] >= '0' &&
         error[-1] <= '9';
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_FAILURE_REPORT_H_
