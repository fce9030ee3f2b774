#ifndef CLEW_RECORDER_CORE_PATTERN_H_
#define CLEW_RECORDER_CORE_PATTERN_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew::recorder {

// A process that a signal ended with a core dump.
struct CrashedProcess {
  int32_t process = 0;
  int32_t signal = 0;
  std::string program;            // its path
  std::string working_directory;  // relative patterns begin there
};

// Where kernel.core_pattern put the dump (core(5)), as `proc` tells it.
// kUnsupported: it is a pipe, or has specifiers whose values are not known here
// (all but %p %i %P %I %s %u %g %e %h %%).
[[nodiscard]] Result<std::string> CorePath(const std::string& proc,
                                           const CrashedProcess& dumped);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_CORE_PATTERN_H_
