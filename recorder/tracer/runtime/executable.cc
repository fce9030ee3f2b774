#include "recorder/tracer/runtime/executable.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "recorder/tracer/runtime/call.h"

namespace clew::tracer {
namespace {

// Reads a list of mappings, a byte after the other. It is the thread's own:
// that of a process whose first thread has ended is empty.
class MapsReader {
 public:
  MapsReader()
      : fd_(Call(SYS_open, AddrOf("/proc/thread-self/maps"),
                 O_RDONLY | O_CLOEXEC)) {}
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;
  ~MapsReader() {
    if (is_open()) {
      Call(SYS_close, fd_);
    }
  }
  bool is_open() const { return !IsError(fd_); }

  // 0 at the end.
  char Next() {
    if (at_ == filled_) {
      const uint64_t count = Call(SYS_read, fd_, AddrOf(&bytes_), kBytes);
      if (IsError(count) || count == 0) {
        return 0;
      }
      filled_ = count;
      at_ = 0;
    }
    return bytes_[at_++];
  }
  // Reads a number in hexadecimal, and the byte behind it.
  uint64_t Number() {
    uint64_t value = 0;
    for (char digit = Next();; digit = Next()) {
      if (digit >= '0' && digit <= '9') {
        value = value << 4 | static_cast<uint64_t>(digit - '0');
      } else if (digit >= 'a' && digit <= 'f') {
        value = value << 4 | static_cast<uint64_t>(digit - 'a' + 10);
      } else {
        return value;
      }
    }
  }
  // Skips the rest of a line; false at the end.
  bool SkipLine() {
    for (;;) {
      const char byte = Next();
      if (byte == '\n' || byte == 0) {
        return byte != 0;
      }
    }
  }

 private:
  static constexpr uint64_t kBytes = 4096;
  uint64_t fd_;
  uint64_t at_ = 0;
  uint64_t filled_ = 0;
  char bytes_[kBytes];
};

// The mappings around `addr` without a hole that can be read and executed;
// empty if it lies in none.
ExecutableRange RangeAround(uint64_t addr) {
  MapsReader maps;
  if (!maps.is_open()) {
    return {addr, ~0ull, false};  // it cannot be told: trust the program
  }
  ExecutableRange range;
  do {
    const uint64_t begin = maps.Number();
    const uint64_t end = maps.Number();
    const bool is_readable = maps.Next() == 'r';
    const bool is_written = maps.Next() == 'w';
    const bool is_code = maps.Next() == 'x' && is_readable;
    const bool is_shared = maps.Next() == 's';
    const bool ends_range = !is_code || begin != range.end;
    if (ends_range && range.begin <= addr && addr < range.end) {
      return range;
    }
    if (is_code && begin != range.end) {
      range = {begin, end, false};
    }
    if (is_code) {
      range.end = end;
      range.is_writable = range.is_writable || is_written || is_shared;
    }
  } while (maps.SkipLine());
  return range.begin <= addr && addr < range.end ? range : ExecutableRange();
}

}  // namespace

Executable ExecutableFrom(Runtime& runtime, uint64_t addr) {
  for (const ExecutableRange& range : runtime.executable) {
    if (range.begin <= addr && addr < range.end) {
      return {range.end, range.is_writable};
    }
  }
  const ExecutableRange range = RangeAround(addr);
  if (range.end == 0) {
    return {addr, false};
  }
  runtime.executable[runtime.next_executable++ % runtime.executable.size()] =
      range;
  return {range.end, range.is_writable};
}

void ForgetExecutable(Runtime& runtime) { runtime.executable.fill({}); }

}  // namespace clew::tracer
