#ifndef CLEW_TESTS_E2E_ANSWERING_PROGRAM_H_
#define CLEW_TESTS_E2E_ANSWERING_PROGRAM_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/os/fd.h"

namespace clew::e2e {

// Lines of the status and of the mappings of a process or thread (`folder` is
// its folder in procfs) that tell what a recorder leaves behind.
std::string TracesIn(const std::string& folder);

// A program of tests/programs that answers lines on its standard input, while
// this exists.
class AnsweringProgram {
 public:
  // Returns once it has answered a first line.
  explicit AnsweringProgram(const char* program = "endless",
                            const std::string& tunables = "",
                            const std::vector<std::string>& arguments = {});
  AnsweringProgram(const AnsweringProgram&) = delete;
  AnsweringProgram& operator=(const AnsweringProgram&) = delete;
  ~AnsweringProgram();

  pid_t pid() const { return pid_; }
  std::string Number() const { return std::to_string(pid_); }
  // `line` is a letter and a newline.
  void Tell(const char* line) const;
  std::string Ask(const char* line = "p\n") const;
  // Ends its input.
  void Hush() { to_ = Fd(); }
  // What a recorder leaves behind in its first thread.
  std::string Traces() const { return TracesIn("/proc/" + Number()); }
  // Waits until somebody has stopped its first thread: it does nothing more
  // that is not recorded.
  void AwaitRecorder() const;

 private:
  pid_t pid_ = 0;
  Fd to_;
  Fd from_;
};

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_ANSWERING_PROGRAM_H_
