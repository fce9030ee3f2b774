#ifndef CLEW_TESTS_SUPPORT_CAPTURES_H_
#define CLEW_TESTS_SUPPORT_CAPTURES_H_

// Recordings of a real CPU (m7-6Y75, Linux 4.14) by perf: of one run as perf
// writes to a file, of another as it writes to a pipe. For programs with
// CLEW_TEST_DATA, the path of tests/data.
namespace clew::test {

inline constexpr const char* kCapture =
    CLEW_TEST_DATA "/perf-intel-pt-4.14/perf.data";
inline constexpr const char* kPipedCapture =
    CLEW_TEST_DATA "/perf-intel-pt-4.14/perf.data.piped";

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_CAPTURES_H_
