#include "common/os/process_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

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

bool IsAlive(pid_t process) {
  const char state = ProcessState(fmt::format("/proc/{}/stat", process));
  return state != 0 && state != 'Z';
}

std::vector<pid_t> FindProcesses(const std::function<bool(pid_t)>& is_wanted) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto parsed =
        std::from_chars(name.data(), name.data() + name.size(), process);
    if (parsed.ec == std::errc() && process > 0 && is_wanted(process)) {
      found.push_back(process);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> CommandLineOf(const std::string& folder,
                                       size_t max_bytes) {
  std::ifstream file(folder + "/cmdline");
  std::string bytes(max_bytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  std::vector<std::string> words;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    words.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string WorkingDirectoryOf(const std::string& folder) {
  std::error_code error;
  return std::filesystem::read_symlink(folder + "/cwd", error).string();
}

uint64_t StatusMask(const std::string& status, std::string_view name) {
  const std::string head = fmt::format("\n{}:", name);
  const size_t at = status.find(head);
  unsigned long mask = 0;
  if (at != std::string::npos) {
    (void)sscanf(status.c_str() + at + head.size(), "%lx", &mask);
  }
  return mask;
}

}  // namespace clew
