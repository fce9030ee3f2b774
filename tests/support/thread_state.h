#ifndef CLEW_TESTS_SUPPORT_THREAD_STATE_H_
#define CLEW_TESTS_SUPPORT_THREAD_STATE_H_

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

namespace clew::test {

// The kernel's letter for the state of a thread, 0 if it is gone. 'S': in a
// call that waits; 'T': stopped by a signal.
//
// Source: proc(5), /proc/pid/stat. The name, in parentheses, may hold anything;
// the state follows it.
inline char ThreadState(int32_t process, int32_t thread) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/stat", process, thread));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= line.size()
             ? '\0'
             : line[name_end + 2];
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_THREAD_STATE_H_
