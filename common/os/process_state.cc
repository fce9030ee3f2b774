#include "common/os/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace clew {

char ProcessState(const std::string& stat_path) {
  const int fd = open(stat_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::array<char, 128> bytes;
  // proc(5) does not let it wait, under a lock either.
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
  const ssize_t got = read(fd, bytes.data(), bytes.size());
  close(fd);
  const std::string_view text(bytes.data(),
                              got < 0 ? 0 : static_cast<size_t>(got));
  const size_t name_end = text.rfind(") ");
  return name_end == text.npos || name_end + 2 >= text.size()
             ? 0
             : text[name_end + 2];
}

}  // namespace clew
