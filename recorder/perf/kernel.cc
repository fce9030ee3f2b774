#include "recorder/perf/kernel.h"

#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace clew::recorder::perf {
namespace {

class RealKernel final : public PerfKernel {
 public:
  Result<Fd> OpenEvent(const perf_event_attr& attr, int32_t thread,
                       int core) override {
    const long fd = syscall(SYS_perf_event_open, &attr, thread, core,
                            /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
      return SystemError(
          errno, fmt::format("cannot open an event of type {} for {} on core "
                             "{}",
                             uint32_t{attr.type},
                             thread < 0 ? "all threads"
                                        : fmt::format("thread {}", thread),
                             core));
    }
    return Fd(static_cast<int>(fd));
  }

  Result<Fd> OpenCgroupEvent(const perf_event_attr& attr, const Fd& folder,
                             int core) override {
    const long fd =
        syscall(SYS_perf_event_open, &attr, folder.get(), core,
                /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);
    if (fd < 0) {
      return SystemError(errno, fmt::format("cannot open an event of type {} "
                                            "for a cgroup on core {}",
                                            uint32_t{attr.type}, core));
    }
    return Fd(static_cast<int>(fd));
  }

  Result<uint64_t> EventId(const Fd& event) override {
    uint64_t id = 0;
    if (ioctl(event.get(), PERF_EVENT_IOC_ID, &id) != 0) {
      return SystemError(errno, "cannot ask an event for its id");
    }
    return id;
  }

  Result<MappedMemory> Map(const Fd& event, uint64_t offset, size_t bytes,
                           bool writable) override {
    void* begin = mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0),
                       MAP_SHARED, event.get(), static_cast<off_t>(offset));
    if (begin == MAP_FAILED) {
      return SystemError(
          errno, fmt::format("cannot map a ring of {} bytes (without "
                             "CAP_IPC_LOCK kernel.perf_event_mlock_kb limits "
                             "it)",
                             bytes));
    }
    return MappedMemory({static_cast<std::byte*>(begin), bytes});
  }

  Status Control(const Fd& event, unsigned long request, unsigned long argument,
                 std::string_view what) override {
    if (ioctl(event.get(), request, argument) != 0) {
      return SystemError(errno, fmt::format("cannot {} an event", what));
    }
    return {};
  }

  Result<Fd> MakePoller() override {
    const int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
      return SystemError(errno, "cannot make an epoll set");
    }
    return Fd(fd);
  }

  Status Watch(const Fd& poller, const Fd& event) override {
    epoll_event interest = {};
    interest.events = EPOLLIN;
    if (epoll_ctl(poller.get(), EPOLL_CTL_ADD, event.get(), &interest) != 0) {
      return SystemError(errno, "cannot add an event to an epoll set");
    }
    return {};
  }

  Result<bool> Wait(const Fd& poller, int timeout_ms) override {
    epoll_event ready;
    const int count = epoll_wait(poller.get(), &ready, 1, timeout_ms);
    if (count < 0 && errno != EINTR) {
      return SystemError(errno, "cannot wait for events");
    }
    return count > 0;
  }

  Status WaitForWriters() override {
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
      return SystemError(errno,
                         "cannot wait for the writers of a ring (membarrier; "
                         "kernels booted with nohz_full refuse it)");
    }
    return {};
  }
};

}  // namespace

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (!bytes_.empty()) {
    munmap(bytes_.data(), bytes_.size());
  }
}

Result<Fd> PerfKernel::OpenCgroupEvent(const perf_event_attr&, const Fd&, int) {
  return Unsupported("this kernel has no events of cgroups");
}

Result<uint64_t> PerfKernel::EventId(const Fd&) {
  return Unsupported("this kernel gives its events no ids");
}

PerfKernel& RealPerfKernel() {
  static RealKernel kernel;
  return kernel;
}

}  // namespace clew::recorder::perf
