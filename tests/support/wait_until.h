#ifndef CLEW_TESTS_SUPPORT_WAIT_UNTIL_H_
#define CLEW_TESTS_SUPPORT_WAIT_UNTIL_H_

#include <chrono>
#include <concepts>
#include <thread>

namespace clew::test {

// How long tests wait for an event. No machine is so slow that a right program
// needs it: it ends the test of a broken one.
inline constexpr std::chrono::seconds kWaitMax{120};
inline constexpr double kWaitMax_s = kWaitMax.count();

// For limits of the program under test that must not end anything before the
// test has seen what it waits for: much longer than that.
inline constexpr std::chrono::seconds kNeverInATest{600};

// Looks again and again until `holds` is true. Returns false after kWaitMax, or
// that many times of it, for many events at once.
template <std::predicate Condition>
[[nodiscard]] bool WaitUntil(Condition holds, int times = 1) {
  const auto end = std::chrono::steady_clock::now() + kWaitMax * times;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      return holds();  // this thread may have stood still since it looked
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_WAIT_UNTIL_H_
