#include "common/os/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace clew {

Result<Fd> TryLockFile(const std::string& path,
                       std::chrono::milliseconds wait) {
  constexpr std::chrono::milliseconds kPause(50);
  Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return SystemError(errno, fmt::format("cannot lock {:?}", path));
    }
    if (wait <= wait.zero()) {
      return Fd();
    }
    const auto pause = std::min(wait, kPause);
    std::this_thread::sleep_for(pause);
    wait -= pause;
  }
  return file;
}

}  // namespace clew
