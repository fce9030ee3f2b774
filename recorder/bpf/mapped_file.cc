#include "recorder/bpf/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/os/system_file.h"
#include "common/x86/page.h"

namespace clew::recorder::bpf {
namespace {

constexpr uint64_t kBytesMax = uint64_t{64} << 20;  // of one mapping
constexpr int64_t kSecondNs = 1'000'000'000;
// Times of files are those of the last tick of the kernel, 100 Hz at least.
constexpr int64_t kTickNs = 10'000'000;

int64_t Nanos(const timespec& time) {
  return time.tv_sec * kSecondNs + time.tv_nsec;
}

int64_t Now(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return Nanos(now);
}

// Whether a file of this state has been what it is at `at`, and before.
bool IsUnchangedSince(MonotonicNanos at, const struct stat& info) {
  const int64_t file_time = Now(CLOCK_REALTIME) - Now(CLOCK_MONOTONIC) +
                            static_cast<int64_t>(at.as_int());
  return Nanos(info.st_ctim) + kTickNs <= file_time;
}

// A mapping that shows what others write into the file later.
bool MayBeChangedByOthers(const InputCall& call, const struct stat& info) {
  return (call.args[3] & MAP_SHARED) != 0 &&
         OthersMayWrite(call.args[2], O_RDONLY, info);
}

}  // namespace

MappedFileReader::MappedFileReader(int32_t process)
    : process_(process),
      root_(open(fmt::format("/proc/{}/root", process).c_str(),
                 O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

// By its path, or by the mapping if that has no name any more.
Fd MappedFileReader::OpenFile(const InputCall& call,
                              const MappedFileName& name) const {
  struct stat info = {};
  const std::string path(name.path.substr(1));
  const open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                        .mode = 0,
                        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  Fd file(static_cast<int>(
      syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof(how))));
  if (file.get() >= 0 && fstat(file.get(), &info) == 0 &&
      info.st_ino == name.inode) {
    return file;
  }
  const auto begin = static_cast<uint64_t>(call.result.value_or(0));
  const uint64_t end = begin + RoundUpToPage(call.args[1]);
  return Fd(open(
      fmt::format("/proc/{}/map_files/{:x}-{:x}", process_, begin, end).c_str(),
      O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

std::optional<std::vector<std::byte>> MappedFileReader::Read(
    const InputCall& call) const {
  const MappedFileName name = call.file.value_or(MappedFileName());
  if (name.path.size() < 2) {
    return std::nullopt;
  }
  const Fd file = OpenFile(call, name);
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode) || info.st_ino != name.inode ||
      MayBeChangedByOthers(call, info) || !IsUnchangedSince(call.left, info)) {
    return std::nullopt;
  }
  const uint64_t offset = call.args[5];
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  const uint64_t wanted = std::min(RoundUpToPage(call.args[1]),
                                   file_bytes - std::min(offset, file_bytes));
  if (wanted > kBytesMax) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(wanted);
  for (uint64_t done = 0; done < wanted;) {
    const ssize_t got = pread(file.get(), bytes.data() + done, wanted - done,
                              static_cast<off_t>(offset + done));
    if (got <= 0) {
      return std::nullopt;
    }
    done += static_cast<uint64_t>(got);
  }
  const bool was_known =
      fstat(file.get(), &info) == 0 && IsUnchangedSince(call.left, info);
  return was_known ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace clew::recorder::bpf
