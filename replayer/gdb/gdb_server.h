#ifndef CLEW_REPLAYER_GDB_GDB_SERVER_H_
#define CLEW_REPLAYER_GDB_GDB_SERVER_H_

#include <cstdint>
#include <string>

#include "common/os/fd.h"
#include "common/result.h"
#include "replayer/image_files.h"
#include "replayer/timeline.h"

namespace clew::replayer::gdb {

// Listens for one gdb on a new socket at `path`. Fails with kInvalidArgument if
// the path is too long, and with kSystem if it cannot listen there.
[[nodiscard]] Result<Fd> ListenUnix(const std::string& path);

// Listens on 127.0.0.1 and no other address; `port` 0 lets the kernel choose
// and is then set to what it chose. Fails with kSystem if it cannot listen.
[[nodiscard]] Result<Fd> ListenLoopback(uint16_t& port);

// Waits for the one client. Fails with kSystem if the connection cannot be
// accepted.
[[nodiscard]] Result<Fd> Accept(const Fd& listener);

// Serves one gdb until it detaches, kills or hangs up, which is not an error.
// Reads from `in_fd` and writes to `out_fd`, which may be the same socket, or
// standard input and output under gdb's `target remote | command`. REQUIRES:
// SIGPIPE is ignored unless out_fd is a socket.
[[nodiscard]] Status Serve(int in_fd, int out_fd, Timeline& timeline,
                           ImageFiles& files);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_GDB_SERVER_H_
