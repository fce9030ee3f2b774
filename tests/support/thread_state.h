#ifndef CLEW_TESTS_SUPPORT_THREAD_STATE_H_
#define CLEW_TESTS_SUPPORT_THREAD_STATE_H_

#include <fmt/format.h>

#include <cstdint>

#include "common/os/process_state.h"

namespace clew::test {

// ProcessState of a thread.
inline char ThreadState(int32_t process, int32_t thread) {
  return ProcessState(fmt::format("/proc/{}/task/{}/stat", process, thread));
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_THREAD_STATE_H_
