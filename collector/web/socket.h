#ifndef CLEW_COLLECTOR_WEB_SOCKET_H_
#define CLEW_COLLECTOR_WEB_SOCKET_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew::collector::web {

// A file descriptor; moves, closes when destroyed.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept;
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A socket that listens and does not block. kInvalidArgument: `address` is not
// numeric. kSystem.
[[nodiscard]] Result<Fd> ListenOn(const std::string& address, uint16_t port);
// REQUIRES: a socket that ListenOn made.
[[nodiscard]] Result<uint16_t> PortOf(const Fd& listening);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_SOCKET_H_
