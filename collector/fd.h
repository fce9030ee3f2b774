#ifndef CLEW_COLLECTOR_FD_H_
#define CLEW_COLLECTOR_FD_H_

#include <unistd.h>

#include <utility>

namespace clew::collector {

// A file descriptor that closes itself; -1: none. Moves.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Fd() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) {
      close(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_FD_H_
