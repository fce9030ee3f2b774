#include "collector/jobs/job.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "common/os/fd.h"
#include "common/text/signal_text.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

constexpr const char* kBundleName = "bundle.clew";
constexpr const char* kScheduleName = "bundle.clew/schedule.pb";
// Threads and processes of one child that are at work at once.
constexpr uint64_t kCpuPerWall = 4;

// Opens what is below `folder` without following a link that a child may have
// put there, nor waiting for a pipe.
int OpenBelow(int folder, const char* path) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(
      syscall(SYS_openat2, folder, path, &how, sizeof(how)));
}

Result<std::vector<std::byte>> ReadAll(int fd, uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t size = read(fd, bytes.data() + got, bytes.size() - got);
    if (size < 0 && errno != EINTR) {
      return SystemError(errno, "cannot read the schedule");
    }
    if (size == 0) {
      break;
    }
    got += size > 0 ? static_cast<size_t>(size) : 0;
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

std::string Job::BundleFolder() const { return folder_ + "/" + kBundleName; }

Status Job::Prepare(const BundleId& id) {
  CLEW_ASSIGN_OR_RETURN(list, store_.ReadList(id));
  if (list.size_bytes() > options_.work_bytes_max) {
    return LimitReached("bundle of {} bytes, jobs take at most {}",
                        list.size_bytes(), options_.work_bytes_max);
  }
  FileSystem& files = PosixFileSystem();
  folder_ = options_.work_folder + "/" + id.hex();
  CLEW_RETURN_IF_ERROR(files.RemoveAll(folder_));
  CLEW_RETURN_IF_ERROR(files.CreateDirectory(folder_));
  return store_.Materialise(id, BundleFolder(), BundleStore::Sync::kNothing);
}

Job::~Job() {
  if (!folder_.empty()) {
    // What cannot be removed now is when the collector starts.
    (void)PosixFileSystem().RemoveAll(folder_);
  }
}

ConfinedChildRequest Job::Request(std::vector<std::string> arguments,
                                  double wall_s) const {
  arguments.insert(arguments.begin(), options_.clew);
  // From its own folder, so that messages do not tell the collector's.
  arguments.push_back(kBundleName);
  return {.arguments = std::move(arguments),
          .folder = folder_,
          .limits = {.wall_s = wall_s,
                     .cpu_s =
                         kCpuPerWall * static_cast<uint64_t>(std::ceil(wall_s)),
                     .memory_bytes = options_.memory_bytes,
                     .address_bytes =
                         options_.memory_bytes + options_.work_bytes_max,
                     .file_bytes = transfer::kScheduleBytesMax},
          .stop_fd = stop_fd_};
}

Result<ConfinedChildOutcome> Job::RunBacktrace() const {
  ConfinedChildRequest request =
      Request({"backtrace", "--json"}, options_.analysis_time_limit_s);
  request.limits.output_bytes = kBacktracesBytesMax;
  return RunConfinedChild(request);
}

Result<ConfinedChildOutcome> Job::RunSolve() const {
  ConfinedChildRequest request =
      Request({"solve", "--json", "--time-limit",
               fmt::format("{:g}", options_.solve_time_limit_s)},
              options_.solve_time_limit_s + options_.solve_grace_s);
  request.may_fork = true;  // Z3 runs in a process of its own
  return RunConfinedChild(request);
}

Result<std::vector<std::byte>> Job::ReadSchedule() const {
  const Fd folder(
      open(folder_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) {
    return SystemError(errno, "cannot open " + folder_);
  }
  const Fd file(OpenBelow(folder.get(), kScheduleName));
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0 ||
      !S_ISREG(status.st_mode)) {
    return CorruptInput("clew solve: said witness and left no schedule");
  }
  const auto size_bytes = static_cast<uint64_t>(status.st_size);
  if (size_bytes > transfer::kScheduleBytesMax) {
    return LimitReached("clew solve: a schedule of {} bytes, at most {}",
                        size_bytes, transfer::kScheduleBytesMax);
  }
  return ReadAll(file.get(), size_bytes);
}

std::string Describe(std::string_view command,
                     const ConfinedChildOutcome& outcome) {
  std::string text;
  switch (outcome.end) {
    case ConfinedChildEnd::kLimit:
      return fmt::format("{}: ended by the {}", command, outcome.limit);
    case ConfinedChildEnd::kSignal:
      text =
          fmt::format("{}: ended by {}", command, SignalText(outcome.signal));
      break;
    case ConfinedChildEnd::kExited:
    case ConfinedChildEnd::kStopped:
      text = fmt::format("{}: exit status {}", command, outcome.exit_status);
      break;
  }
  if (!outcome.last_error.empty()) {
    text += ": " + outcome.last_error;
  }
  return text;
}

}  // namespace clew::collector
