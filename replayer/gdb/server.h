#ifndef CLEW_REPLAYER_GDB_SERVER_H_
#define CLEW_REPLAYER_GDB_SERVER_H_

#include <cstdint>
#include <string>

#include "common/result.h"
#include "replayer/image_files.h"
#include "replayer/timeline.h"

namespace clew::replayer::gdb {

// A file descriptor that is closed when this goes. Moves.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Listens for one gdb on a new socket at `path`. kInvalidArgument: the path is
// too long. kSystem otherwise.
[[nodiscard]] Result<Socket> ListenUnix(const std::string& path);

// Listens on 127.0.0.1 and no other address; `port` 0 lets the kernel choose
// and is then set to what it chose.
[[nodiscard]] Result<Socket> ListenLoopback(uint16_t& port);

// Waits for the one client.
[[nodiscard]] Result<Socket> Accept(const Socket& listener);

// Serves one gdb until it detaches, kills or hangs up, which is no error.
// Reads from `in_fd` and writes to `out_fd`, which may be the same socket, or
// standard input and output under gdb's `target remote | command`.
// REQUIRES: SIGPIPE is ignored unless out_fd is a socket.
[[nodiscard]] Status Serve(int in_fd, int out_fd, Timeline& timeline,
                           ImageFiles& files);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_SERVER_H_
