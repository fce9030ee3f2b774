#ifndef CLEW_TESTS_SUPPORT_AWAIT_H_
#define CLEW_TESTS_SUPPORT_AWAIT_H_

#include <chrono>
#include <thread>

// Waits of tests are for what has to come, however long it takes.

namespace clew::test {

// Only what never comes takes so long: then the test ends with a message.
inline constexpr std::chrono::seconds kAwaitLimit{120};

// Looks now and then until `holds`; false if it never did within the limit.
template <class Condition>
[[nodiscard]] bool Await(Condition holds) {
  const auto limit = std::chrono::steady_clock::now() + kAwaitLimit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= limit) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_AWAIT_H_
