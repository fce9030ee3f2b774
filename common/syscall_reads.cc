#include "common/syscall_reads.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "common/digest.h"
#include "common/syscalls.h"
#include "common/x86/page.h"

namespace clew {
namespace {

constexpr uint64_t kTextBytesMax = 4096;  // PATH_MAX, limits.h
constexpr uint64_t kVectorMax = 1024;     // UIO_MAXIOV, linux/uio.h

// How much is read at a pointer argument, if that is not null.
enum class Extent : uint8_t {
  kFixed,     // `bytes`
  kCounted,   // argument `other` * `bytes`
  kLength,    // `bytes`, if argument `other` is not null either
  kText,      // up to a NUL, which counts, too
  kFdSet,     // an fd_set of argument `other` bits; the kernel reads fewer if
              // the process's table of descriptors has fewer places
  kVector,    // an iovec[argument `other`] and what that points to
  kMessage,   // a msghdr and all that it points to
  kHeader,    // a msghdr and its iovec[]: what is received says no contents
  kMessages,  // an mmsghdr[argument `other`], each as kMessage
  kFutex,     // `bytes`, if the operation has a time limit there
  kEpollCtl,  // `bytes`, unless an entry is deleted
};

struct Row {
  uint16_t number = 0;
  uint8_t arg = 0;
  Extent extent = Extent::kFixed;
  uint16_t bytes = 0;
  uint8_t other = 0;
};

constexpr Row Fixed(uint16_t number, uint8_t arg, uint16_t bytes) {
  return {.number = number, .arg = arg, .bytes = bytes};
}
constexpr Row Counted(uint16_t number, uint8_t arg, uint8_t other,
                      uint16_t bytes = 1) {
  return {number, arg, Extent::kCounted, bytes, other};
}
constexpr Row Length(uint16_t number, uint8_t arg, uint8_t other) {
  return {number, arg, Extent::kLength, sizeof(socklen_t), other};
}
constexpr Row Text(uint16_t number, uint8_t arg) {
  return {.number = number, .arg = arg, .extent = Extent::kText};
}
constexpr Row FdSet(uint16_t number, uint8_t arg) {
  return {number, arg, Extent::kFdSet, 0, 0};
}
constexpr Row Vector(uint16_t number, uint8_t arg, uint8_t other) {
  return {number, arg, Extent::kVector, 0, other};
}
constexpr Row Of(Extent extent, uint16_t number, uint8_t arg,
                 uint16_t bytes = 0, uint8_t other = 0) {
  return {number, arg, extent, bytes, other};
}

constexpr uint16_t kTimespec = 16;  // and a timeval
constexpr uint16_t kInterval = 32;  // an itimerspec, two timespecs
constexpr uint16_t kIovec = sizeof(iovec);
constexpr uint16_t kOffset = 8;
constexpr uint16_t kSiginfo = 48;  // kernel_siginfo
constexpr uint16_t kSigaction = 32;

// Sorted by number. Sizes are those of the kernel's structures for x86-64.
// Sources: the calls' manual pages, linux/syscalls.h, asm-generic/siginfo.h.
//
// Left out, because what they read depends on more than is said here: ioctl,
// fcntl, prctl, semctl, shmctl, msgctl, keyctl, bpf, the io_ calls, the set
// behind pselect6's last argument, sched_setattr, mq_open's attributes. Of
// execve and execveat only the path counts: the strings of arguments and
// environment may be redacted in a bundle.
constexpr Row kRows[] = {
    Counted(SYS_write, 1, 2),
    Text(SYS_open, 0),
    Text(SYS_stat, 0),
    Text(SYS_lstat, 0),
    Counted(SYS_poll, 0, 1, 8),
    Fixed(SYS_rt_sigaction, 1, kSigaction),
    Counted(SYS_rt_sigprocmask, 1, 3),
    Counted(SYS_pwrite64, 1, 2),
    Counted(SYS_readv, 1, 2, kIovec),
    Vector(SYS_writev, 1, 2),
    Text(SYS_access, 0),
    FdSet(SYS_select, 1),
    FdSet(SYS_select, 2),
    FdSet(SYS_select, 3),
    Fixed(SYS_select, 4, kTimespec),
    Fixed(SYS_nanosleep, 0, kTimespec),
    Fixed(SYS_setitimer, 1, kInterval),
    Fixed(SYS_sendfile, 2, kOffset),
    Counted(SYS_connect, 1, 2),
    Length(SYS_accept, 2, 1),
    Counted(SYS_sendto, 1, 2),
    Counted(SYS_sendto, 4, 5),
    Length(SYS_recvfrom, 5, 4),
    Of(Extent::kMessage, SYS_sendmsg, 1),
    Of(Extent::kHeader, SYS_recvmsg, 1),
    Counted(SYS_bind, 1, 2),
    Length(SYS_getsockname, 2, 1),
    Length(SYS_getpeername, 2, 1),
    Counted(SYS_setsockopt, 3, 4),
    Length(SYS_getsockopt, 4, 3),
    Text(SYS_execve, 0),
    Counted(SYS_semop, 1, 2, 6),
    Text(SYS_truncate, 0),
    Text(SYS_chdir, 0),
    Text(SYS_rename, 0),
    Text(SYS_rename, 1),
    Text(SYS_mkdir, 0),
    Text(SYS_rmdir, 0),
    Text(SYS_creat, 0),
    Text(SYS_link, 0),
    Text(SYS_link, 1),
    Text(SYS_unlink, 0),
    Text(SYS_symlink, 0),
    Text(SYS_symlink, 1),
    Text(SYS_readlink, 0),
    Text(SYS_chmod, 0),
    Text(SYS_chown, 0),
    Text(SYS_lchown, 0),
    Counted(SYS_setgroups, 1, 0, 4),
    Counted(SYS_rt_sigtimedwait, 0, 3),
    Fixed(SYS_rt_sigtimedwait, 2, kTimespec),
    Fixed(SYS_rt_sigqueueinfo, 2, kSiginfo),
    Counted(SYS_rt_sigsuspend, 0, 1),
    Fixed(SYS_sigaltstack, 0, 24),
    Text(SYS_utime, 0),
    Fixed(SYS_utime, 1, 16),
    Text(SYS_mknod, 0),
    Text(SYS_statfs, 0),
    Fixed(SYS_sched_setparam, 1, 4),
    Fixed(SYS_sched_setscheduler, 2, 4),
    Fixed(SYS_setrlimit, 1, 16),
    Text(SYS_setxattr, 0),
    Text(SYS_setxattr, 1),
    Counted(SYS_setxattr, 2, 3),
    Text(SYS_lsetxattr, 0),
    Text(SYS_lsetxattr, 1),
    Counted(SYS_lsetxattr, 2, 3),
    Text(SYS_fsetxattr, 1),
    Counted(SYS_fsetxattr, 2, 3),
    Text(SYS_getxattr, 0),
    Text(SYS_getxattr, 1),
    Text(SYS_lgetxattr, 0),
    Text(SYS_lgetxattr, 1),
    Text(SYS_fgetxattr, 1),
    Text(SYS_listxattr, 0),
    Text(SYS_llistxattr, 0),
    Text(SYS_removexattr, 0),
    Text(SYS_removexattr, 1),
    Text(SYS_lremovexattr, 0),
    Text(SYS_lremovexattr, 1),
    Text(SYS_fremovexattr, 1),
    Of(Extent::kFutex, SYS_futex, 3, kTimespec),
    Counted(SYS_sched_setaffinity, 2, 1),
    Fixed(SYS_semtimedop, 3, kTimespec),
    Counted(SYS_semtimedop, 1, 2, 6),
    Fixed(SYS_timer_create, 1, 64),
    Fixed(SYS_timer_settime, 2, kInterval),
    Fixed(SYS_clock_settime, 1, kTimespec),
    Fixed(SYS_clock_nanosleep, 2, kTimespec),
    Of(Extent::kEpollCtl, SYS_epoll_ctl, 3, 12),
    Text(SYS_utimes, 0),
    Fixed(SYS_utimes, 1, kInterval),
    Text(SYS_mq_open, 0),
    Text(SYS_mq_unlink, 0),
    Counted(SYS_mq_timedsend, 1, 2),
    Fixed(SYS_mq_timedsend, 4, kTimespec),
    Fixed(SYS_mq_timedreceive, 4, kTimespec),
    Text(SYS_inotify_add_watch, 1),
    Text(SYS_openat, 1),
    Text(SYS_mkdirat, 1),
    Text(SYS_mknodat, 1),
    Text(SYS_fchownat, 1),
    Text(SYS_futimesat, 1),
    Fixed(SYS_futimesat, 2, kInterval),
    Text(SYS_newfstatat, 1),
    Text(SYS_unlinkat, 1),
    Text(SYS_renameat, 1),
    Text(SYS_renameat, 3),
    Text(SYS_linkat, 1),
    Text(SYS_linkat, 3),
    Text(SYS_symlinkat, 0),
    Text(SYS_symlinkat, 2),
    Text(SYS_readlinkat, 1),
    Text(SYS_fchmodat, 1),
    Text(SYS_faccessat, 1),
    FdSet(SYS_pselect6, 1),
    FdSet(SYS_pselect6, 2),
    FdSet(SYS_pselect6, 3),
    Fixed(SYS_pselect6, 4, kTimespec),
    Counted(SYS_ppoll, 0, 1, 8),
    Fixed(SYS_ppoll, 2, kTimespec),
    Counted(SYS_ppoll, 3, 4),
    Fixed(SYS_splice, 1, kOffset),
    Fixed(SYS_splice, 3, kOffset),
    Text(SYS_utimensat, 1),
    Fixed(SYS_utimensat, 2, kInterval),
    Counted(SYS_epoll_pwait, 4, 5),
    Counted(SYS_signalfd, 1, 2),
    Fixed(SYS_timerfd_settime, 2, kInterval),
    Length(SYS_accept4, 2, 1),
    Counted(SYS_signalfd4, 1, 2),
    Counted(SYS_preadv, 1, 2, kIovec),
    Vector(SYS_pwritev, 1, 2),
    Fixed(SYS_rt_tgsigqueueinfo, 3, kSiginfo),
    Fixed(SYS_recvmmsg, 4, kTimespec),
    Fixed(SYS_prlimit64, 2, 16),
    Of(Extent::kMessages, SYS_sendmmsg, 1, sizeof(mmsghdr), 2),
    Text(SYS_renameat2, 1),
    Text(SYS_renameat2, 3),
    Text(SYS_memfd_create, 0),
    Text(SYS_execveat, 1),
    Fixed(SYS_copy_file_range, 1, kOffset),
    Fixed(SYS_copy_file_range, 3, kOffset),
    Counted(SYS_preadv2, 1, 2, kIovec),
    Vector(SYS_pwritev2, 1, 2),
    Text(SYS_statx, 1),
    Counted(SYS_clone3, 0, 1),
    Text(SYS_openat2, 1),
    Counted(SYS_openat2, 2, 3),
    Text(SYS_faccessat2, 1),
    Fixed(SYS_epoll_pwait2, 3, kTimespec),
    Counted(SYS_epoll_pwait2, 4, 5),
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::number));

// The operations whose argument 3 is a time limit and no number.
bool HasTimeLimit(uint64_t operation) {
  switch (static_cast<int>(operation) & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_LOCK_PI:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI2:
      return true;
    default:
      return false;
  }
}

// Collects the ranges of one call.
class Reads {
 public:
  Reads(uint64_t number, const std::array<uint64_t, 6>& args,
        const ProgramMemory& memory)
      : number_(number), args_(args), memory_(memory) {}

  std::vector<MemoryRange> Collect() {
    for (const Row& row :
         std::ranges::equal_range(kRows, number_, {}, &Row::number)) {
      if (args_[row.arg] != 0) {
        AddRow(row);
      }
    }
    return std::move(ranges_);
  }

 private:
  void AddRow(const Row& row) {
    const uint64_t addr = args_[row.arg];
    const uint64_t other = Argument(row.other);
    switch (row.extent) {
      case Extent::kFixed:
        return Add(addr, row.bytes);
      case Extent::kCounted:
        return Add(addr, Times(other, row.bytes));
      case Extent::kLength:
        return Add(addr, other == 0 ? 0 : row.bytes);
      case Extent::kText:
        return AddText(addr);
      case Extent::kFdSet:
        return Add(addr, (other + 63) / 64 * 8);
      case Extent::kVector:
        return AddVector(addr, other, true);
      case Extent::kMessage:
        return AddMessage(addr, true);
      case Extent::kHeader:
        return AddMessage(addr, false);
      case Extent::kMessages:
        return AddMessages(addr, std::min(other, kVectorMax), row.bytes);
      case Extent::kFutex:
        return Add(addr, HasTimeLimit(args_[1]) ? row.bytes : 0);
      case Extent::kEpollCtl:
        return Add(addr, Argument(1) == EPOLL_CTL_DEL ? 0 : row.bytes);
    }
  }

  // As far as the kernel looks at it.
  uint64_t Argument(uint8_t index) const {
    const SyscallPrototype* const prototype = FindPrototype(number_);
    const std::string_view letters =
        prototype == nullptr ? "" : prototype->arguments;
    const bool is_int = index < letters.size() && letters[index] == 'i';
    return is_int ? args_[index] & UINT32_MAX : args_[index];
  }

  static uint64_t Times(uint64_t count, uint64_t bytes) {
    return std::min(count, kSyscallReadBytesMax) * bytes;
  }

  void Add(uint64_t addr, uint64_t size_bytes) {
    const uint64_t taken = std::min(size_bytes, left_);
    if (addr != 0 && taken != 0) {
      ranges_.push_back({addr, taken});
      left_ -= taken;
    }
  }

  // Page by page: what follows the text may not be mapped.
  void AddText(uint64_t addr) {
    std::array<std::byte, 256> piece;
    uint64_t size_bytes = 0;
    while (size_bytes < kTextBytesMax) {
      const uint64_t at = addr + size_bytes;
      const auto part = std::span(piece).first(static_cast<size_t>(
          std::min<uint64_t>(piece.size(), kPageBytes - at % kPageBytes)));
      if (!memory_.Read(at, part)) {
        break;
      }
      const auto end = std::ranges::find(part, std::byte{0});
      size_bytes += static_cast<uint64_t>(end - part.begin());
      if (end != part.end()) {
        ++size_bytes;
        break;
      }
    }
    Add(addr, std::min(size_bytes, kTextBytesMax));
  }

  void AddVector(uint64_t addr, uint64_t count, bool contents) {
    count = std::min(count, kVectorMax);
    std::vector<std::array<uint64_t, 2>> parts(static_cast<size_t>(count));
    Add(addr, count * kIovec);
    if (!contents ||
        !memory_.Read(addr, std::as_writable_bytes(std::span(parts)))) {
      return;
    }
    for (const auto& [base, length] : parts) {
      Add(base, length);
    }
  }

  // msghdr: name, namelen, iov, iovlen, control, controllen, flags.
  void AddMessage(uint64_t addr, bool contents) {
    std::array<uint64_t, 7> header;
    Add(addr, sizeof(header));
    if (!memory_.Read(addr, std::as_writable_bytes(std::span(header)))) {
      return;
    }
    AddVector(header[2], header[3], contents);
    if (contents) {
      Add(header[0], header[1] & UINT32_MAX);
      Add(header[4], header[5]);
    }
  }

  void AddMessages(uint64_t addr, uint64_t count, uint64_t size_bytes) {
    for (uint64_t i = 0; i < count; ++i) {
      AddMessage(addr + i * size_bytes, true);
    }
  }

  uint64_t number_;
  const std::array<uint64_t, 6>& args_;
  const ProgramMemory& memory_;
  uint64_t left_ = kSyscallReadBytesMax;
  std::vector<MemoryRange> ranges_;
};

}  // namespace

std::vector<MemoryRange> ReadsOfSyscall(uint64_t number,
                                        const std::array<uint64_t, 6>& args,
                                        const ProgramMemory& memory) {
  return Reads(number, args, memory).Collect();
}

std::optional<uint64_t> DigestOfReads(std::span<const MemoryRange> ranges,
                                      const ProgramMemory& memory) {
  std::array<std::byte, kPageBytes> piece;
  uint64_t digest = kEmptyDigest;
  for (const auto& [addr, size_bytes] : ranges) {
    for (uint64_t at = 0; at < size_bytes; at += piece.size()) {
      const auto part = std::span(piece).first(static_cast<size_t>(
          std::min<uint64_t>(piece.size(), size_bytes - at)));
      if (!memory.Read(addr + at, part)) {
        return std::nullopt;
      }
      digest = DigestWords(part, digest);
    }
    digest = MixBits(digest ^ size_bytes);
  }
  return ranges.empty() ? std::nullopt : std::optional(digest);
}

}  // namespace clew
