#include "recorder/qemu/calls/own_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace clew::recorder {
namespace {

constexpr rlim_t kDescriptorsMax = 1 << 20;

// A lock could be held by a thread that a copy of the process does not have.
std::array<std::atomic<bool>, kDescriptorsMax> g_is_own = {};

int MoveHigh(int fd) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto low = static_cast<int>(std::min(limit.rlim_cur, kDescriptorsMax));
  for (const int wanted : {low - low / 4, low / 2}) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, wanted);
    if (high >= 0) {
      close(fd);
      return high;
    }
  }
  return fd;
}

std::atomic<bool>* Entry(int fd) {
  const auto index = static_cast<size_t>(fd);
  return fd >= 0 && index < g_is_own.size() ? &g_is_own[index] : nullptr;
}

}  // namespace

int TakeDescriptor(int fd) {
  const int high = MoveHigh(fd);
  if (std::atomic<bool>* entry = Entry(high)) {
    *entry = true;
  }
  return high;
}

int CloseOwnDescriptor(int fd) {
  if (std::atomic<bool>* entry = Entry(fd)) {
    *entry = false;
  }
  return close(fd);
}

bool IsOwnDescriptor(int fd) {
  const std::atomic<bool>* entry = Entry(fd);
  return entry != nullptr && *entry;
}

std::vector<DescriptorRange> WithoutOwn(DescriptorRange range) {
  std::vector<DescriptorRange> rest;
  unsigned begin = range.first;
  for (unsigned fd = range.first; fd <= range.last && fd < g_is_own.size();
       ++fd) {
    if (g_is_own[fd]) {
      if (begin < fd) {
        rest.push_back({.first = begin, .last = fd - 1});
      }
      begin = fd + 1;
    }
  }
  if (begin <= range.last) {
    rest.push_back({.first = begin, .last = range.last});
  }
  return rest;
}

}  // namespace clew::recorder
