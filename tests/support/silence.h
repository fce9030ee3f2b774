#ifndef CLEW_TESTS_SUPPORT_SILENCE_H_
#define CLEW_TESTS_SUPPORT_SILENCE_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <iterator>

#include "common/os/fd.h"

namespace clew::test {

// While it lives, standard output and error of this process go nowhere:
// recorded programs write where the recorder does.
class Silence {
 public:
  Silence() {
    std::fflush(stdout);
    const Fd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
    for (size_t i = 0; i < std::size(kOutputs); ++i) {
      saved_[i] = Fd(fcntl(kOutputs[i], F_DUPFD_CLOEXEC, 3));
      dup2(nowhere.get(), kOutputs[i]);
    }
  }
  ~Silence() {
    for (size_t i = 0; i < std::size(kOutputs); ++i) {
      dup2(saved_[i].get(), kOutputs[i]);
    }
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  static constexpr int kOutputs[] = {STDOUT_FILENO, STDERR_FILENO};
  Fd saved_[std::size(kOutputs)];
};

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_SILENCE_H_
