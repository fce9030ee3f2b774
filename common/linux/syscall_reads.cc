#include "common/linux/syscall_reads.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>

#include "common/digest.h"
#include "common/linux/futex_command.h"
#include "common/linux/syscall_table.h"
#include "common/x86/page.h"

namespace clew {
namespace {

constexpr uint64_t kTextBytesMax = 4096;  // PATH_MAX, limits.h
constexpr uint64_t kVectorMax = 1024;     // UIO_MAXIOV, linux/uio.h

// The operations whose argument 3 is a time limit and no number.
bool HasTimeLimit(uint64_t operation) {
  switch (FutexCommand(operation)) {
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
class RowReads {
 public:
  RowReads(const SyscallRow& row, const std::array<uint64_t, 6>& args,
           const ProgramMemory& memory)
      : row_(row), args_(args), memory_(memory) {}

  std::vector<MemoryRange> Collect() {
    for (const Pointee& pointee : row_.reads) {
      if (args_[pointee.arg] != 0) {
        AddPointee(pointee);
      }
    }
    return std::move(ranges_);
  }

 private:
  void AddPointee(const Pointee& pointee) {
    const uint64_t addr = args_[pointee.arg];
    const uint64_t other = Argument(pointee.other);
    const uint16_t bytes = pointee.bytes;
    switch (pointee.extent) {
      case Extent::kFixed:
        return Add(addr, bytes);
      case Extent::kCounted:
        return Add(addr, Times(other, bytes));
      case Extent::kLength:
        return Add(addr, other == 0 ? 0 : bytes);
      case Extent::kText:
        return AddText(addr);
      case Extent::kFdSet:
        return Add(addr, (Argument(0) + 63) / 64 * 8);
      case Extent::kVector:
        return AddVector(addr, other, true);
      case Extent::kMessage:
        return AddMessage(addr, true);
      case Extent::kHeader:
        return AddMessage(addr, false);
      case Extent::kMessages:
        return AddMessages(addr, std::min(other, kVectorMax), bytes);
      case Extent::kFutex:
        return Add(addr, HasTimeLimit(args_[1]) ? bytes : 0);
      case Extent::kEpollCtl:
        return Add(addr, Argument(1) == EPOLL_CTL_DEL ? 0 : bytes);
      case Extent::kNone:
      case Extent::kResult:
      case Extent::kLengthAt:
      case Extent::kOnInterrupt:
      case Extent::kPages:
      case Extent::kBits:
        return;
    }
  }

  uint64_t Argument(size_t index) const {
    return SyscallArgument(row_, args_, index);
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
    Add(addr, count * sizeof(iovec));
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

  const SyscallRow& row_;
  const std::array<uint64_t, 6>& args_;
  const ProgramMemory& memory_;
  uint64_t left_ = kSyscallReadBytesMax;
  std::vector<MemoryRange> ranges_;
};

}  // namespace

std::vector<MemoryRange> ReadsOfSyscall(uint64_t number,
                                        const std::array<uint64_t, 6>& args,
                                        const ProgramMemory& memory) {
  const SyscallRow* const row = FindSyscall(number);
  return row == nullptr ? std::vector<MemoryRange>()
                        : RowReads(*row, args, memory).Collect();
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
