#include "recorder/qemu/size_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "recorder/qemu/calls/own_descriptor.h"

namespace clew::recorder {

SizeLimit::SizeLimit(uint64_t bytes_max) : bytes_max_(bytes_max) {
  const int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  errors_ = copy < 0 ? -1 : TakeDescriptor(copy);
}

void SizeLimit::Add(uint64_t bytes) {
  const uint64_t all = bytes_.fetch_add(bytes) + bytes;
  if (bytes_max_ > 0 && all > bytes_max_) {
    Drop(fmt::format("it had reached its size limit of {} bytes", bytes_max_));
  }
}

void SizeLimit::Drop(const std::string& why) {
  if (dropping_.exchange(true)) {
    return;
  }
  why_ = why;
  dropped_.store(true, std::memory_order_release);
  const std::string line = fmt::format(
      "clew: the recording is dropped: {}; the program goes on, and if it "
      "fails there will be a core dump without a trace\n",
      why);
  if (errors_ >= 0) {
    (void)!write(errors_, line.data(), line.size());  // nobody else to tell
  }
}

void SizeLimit::Abandon() {
  if (const int fd = std::exchange(errors_, -1); fd >= 0) {
    CloseOwnDescriptor(fd);
  }
}

}  // namespace clew::recorder
