#include "recorder/tracer/runtime/teller.h"

#include <sys/syscall.h>

#include <array>
#include <cerrno>

namespace clew::tracer {

uint64_t ReadSome(ThreadState& thread, uint64_t addr, std::span<uint8_t> to) {
  const iovec local = {.iov_base = to.data(), .iov_len = to.size()};
  const iovec remote = {.iov_base = reinterpret_cast<void*>(addr),
                        .iov_len = to.size()};
  // By the thread's own number: the process' first one may have ended.
  const uint64_t read =
      Call(SYS_process_vm_readv, static_cast<uint64_t>(SlotOf(thread).tid),
           AddrOf(&local), 1, AddrOf(&remote), 1);
  return IsError(read) ? 0 : read;
}

void Teller::TellBytes(ToldKind kind, std::span<const uint8_t> bytes) {
  const ToldHead head = {.kind = kind,
                         .bytes = static_cast<uint32_t>(bytes.size())};
  writer_.Write(BytesOf(head));
  writer_.Write(bytes);
}

std::span<uint8_t> Teller::RoomForWrite(uint64_t bytes) {
  if (left_ == 0) {
    Miss(Untold::kTooLong);
    return {};
  }
  const std::span<uint8_t> room =
      writer_.Room(kWriteHeadBytes + std::min(bytes, kWholeBytesMax))
          .subspan(kWriteHeadBytes);
  return room.first(std::min({uint64_t{room.size()}, bytes, left_}));
}

void Teller::UseWrite(uint64_t addr, size_t bytes) {
  const ToldHead head = {.kind = ToldKind::kWrite,
                         .bytes = static_cast<uint32_t>(sizeof(addr) + bytes)};
  const std::span<uint8_t> room = writer_.Room(kWriteHeadBytes + bytes);
  std::ranges::copy(BytesOf(addr),
                    std::ranges::copy(BytesOf(head), room.begin()).out);
  writer_.Use(kWriteHeadBytes + bytes);
}

bool Teller::TellRange(uint64_t addr, uint64_t bytes) {
  while (addr != 0 && bytes != 0) {
    const std::span<uint8_t> room = RoomForWrite(bytes);
    if (room.empty()) {
      return false;
    }
    const uint64_t read = ReadSome(thread_, addr, room);
    if (read != 0) {
      UseWrite(addr, read);
    }
    if (read != room.size()) {
      return Miss(Untold::kFault);
    }
    addr += read;
    bytes -= read;
    left_ -= read;
  }
  return true;
}

void Teller::TellWord(uint64_t addr, uint32_t value) {
  const std::span<uint8_t> room =
      addr == 0 ? std::span<uint8_t>() : RoomForWrite(sizeof(value));
  if (room.size() == sizeof(value)) {
    std::ranges::copy(BytesOf(value), room.begin());
    UseWrite(addr, sizeof(value));
    left_ -= sizeof(value);
  }
}

template <class ReadAt>
void Teller::TellContents(uint64_t addr, uint64_t bytes, ReadAt read) {
  for (uint64_t done = 0; done < bytes;) {
    const std::span<uint8_t> room = RoomForWrite(bytes - done);
    if (room.empty()) {
      return;
    }
    const uint64_t count = read(room, done);
    if (count == static_cast<uint64_t>(-EINTR)) {
      continue;
    }
    if (IsError(count)) {
      Miss(Untold::kFault);
      return;
    }
    if (count == 0) {
      return;
    }
    if (std::ranges::any_of(room.first(count),
                            [](uint8_t byte) { return byte != 0; })) {
      UseWrite(addr + done, count);
    }
    done += count;
    left_ -= count;
  }
}

void Teller::TellFile(uint64_t fd, uint64_t offset, uint64_t addr,
                      uint64_t bytes) {
  TellContents(addr, bytes, [&](std::span<uint8_t> to, uint64_t done) {
    return Call(SYS_pread64, fd, AddrOf(to.data()), to.size(), offset + done);
  });
}

void Teller::TellNonzero(uint64_t addr, uint64_t bytes) {
  TellContents(addr, bytes, [&](std::span<uint8_t> to, uint64_t done) {
    return ReadSome(thread_, addr + done, to);
  });
}

void Teller::TellPath(uint64_t fd) {
  // "/proc/thread-self/fd/N"
  std::array<char, 48> link = {};
  constexpr char kFolder[] = "/proc/thread-self/fd/";
  char* at = std::copy_n(kFolder, sizeof(kFolder) - 1, link.data());
  uint32_t divisor = 1;
  while (fd / divisor >= 10) {
    divisor *= 10;
  }
  for (; divisor != 0; divisor /= 10) {
    *at++ = static_cast<char>('0' + fd / divisor % 10);
  }
  std::array<uint8_t, 4095> path;
  const uint64_t bytes =
      Call(SYS_readlink, AddrOf(link.data()), AddrOf(path.data()), path.size());
  if (!IsError(bytes)) {
    TellBytes(ToldKind::kPath, std::span(path).first(bytes));
  }
}

}  // namespace clew::tracer
