#include "cli/run_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/os/child_process.h"
#include "common/os/fd.h"

namespace clew::cli {
namespace {

std::string ReadToEnd(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return text;
    }
    const size_t room = kCapturedBytesMax - text.size();
    text.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
  }
}

}  // namespace

Result<ProgramOutput> RunProgram(const std::vector<std::string>& arguments) {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.get() < 0) {
    return SystemError(errno, "cannot open /dev/null");
  }
  // A file has room for all of it before anybody reads it.
  const Fd errors(memfd_create("errors", MFD_CLOEXEC));
  if (errors.get() < 0) {
    return SystemError(errno, "cannot make a file in memory");
  }
  CLEW_ASSIGN_OR_RETURN(pipe, MakePipe());
  CLEW_ASSIGN_OR_RETURN(pid,
                        SpawnProgram(arguments, {.input = null.get(),
                                                 .output = pipe.write_end.get(),
                                                 .errors = errors.get()}));
  pipe.write_end.Close();
  ProgramOutput output;
  output.text = ReadToEnd(pipe.read_end.get());
  pipe.read_end.Close();
  CLEW_ASSIGN_OR_RETURN(status, WaitForChild(pid));
  output.exit_status = ExitStatusOf(status);
  lseek(errors.get(), 0, SEEK_SET);
  output.errors = ReadToEnd(errors.get());
  return output;
}

}  // namespace clew::cli
