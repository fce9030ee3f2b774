#include "bench/bpf_inputs/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "bench/cpu_time.h"
#include "common/os/child_process.h"

namespace clew::bench {
namespace {

constexpr int64_t kBeginsInNs = 20'000'000;  // after it was let go

int64_t Nanos(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Threads that are about to make their last call are there still.
bool IsAlone(pid_t process) {
  namespace fs = std::filesystem;
  std::error_code gone;
  const fs::directory_iterator threads(fmt::format("/proc/{}/task", process),
                                       gone);
  return std::distance(begin(threads), end(threads)) == 1;
}

Status WriteBytes(const Fd& to, size_t count) {
  const std::string bytes(count, 'g');
  return write(to.get(), bytes.data(), count) == static_cast<ssize_t>(count)
             ? Status()
             : SystemError(errno, "cannot let the load go on");
}

}  // namespace

Result<std::unique_ptr<LoadProcess>> LoadProcess::Start(const CallPlan& plan) {
  std::unique_ptr<LoadProcess> load(new LoadProcess(plan));
  void* const memory = mmap(nullptr, sizeof(LoadBoard), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return SystemError(errno, "cannot share memory with the load");
  }
  load->board_ = new (memory) LoadBoard();
  CLEW_RETURN_IF_ERROR(load->Fork());
  CLEW_RETURN_IF_ERROR(load->AwaitThreads());
  return load;
}

LoadProcess::~LoadProcess() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    (void)WaitForChild(process_);
  }
  if (board_ != nullptr) {
    munmap(board_, sizeof(LoadBoard));
  }
}

Status LoadProcess::Fork() {
  CLEW_ASSIGN_OR_RETURN(gate, MakePipe());
  CLEW_ASSIGN_OR_RETURN(end, MakePipe());
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) {
    return SystemError(errno, "cannot start the load");
  }
  if (process_ == 0) {
    if (!DieWithParent(parent)) {
      _exit(1);
    }
    BeLoad(plan_, *board_, gate.read_end.get(), end.read_end.get());
  }
  gate_ = std::move(gate.write_end);
  end_ = std::move(end.write_end);
  return {};
}

Status LoadProcess::AwaitThreads() {
  while (!board_->begun.load()) {
    CLEW_ASSIGN_OR_RETURN(has_ended, HasEnded());
    if (has_ended) {
      return Unsupported("the load ended before it began");
    }
    usleep(1000);
  }
  return {};
}

Status LoadProcess::LetGo() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  board_->begin_ns = Nanos(now) + kBeginsInNs;
  return WriteBytes(gate_, plan_.threads());
}

Result<bool> LoadProcess::HasEnded() {
  if (!is_told_to_end_ && board_->done.load() == plan_.threads() &&
      IsAlone(process_)) {
    is_told_to_end_ = true;
    CLEW_RETURN_IF_ERROR(WriteBytes(end_, 1));
  }
  int status = 0;
  rusage usage = {};
  const pid_t reaped = wait4(process_, &status, WNOHANG, &usage);
  if (reaped == 0) {
    return false;
  }
  process_ = -1;
  if (reaped < 0 || status != 0) {
    return Unsupported("the load ended with exit status {}",
                       ExitStatusOf(status));
  }
  cpu_seconds_ = CpuSeconds(usage) - CpuSeconds(board_->at_begin);
  return true;
}

uint64_t LoadProcess::calls_made() const {
  uint64_t made = 0;
  for (const LoadBoard::Row& row : board_->rows) {
    made += row.made.load();
  }
  return made;
}

double LoadProcess::seconds() const {
  int64_t took_ns = static_cast<int64_t>(plan_.slices() * plan_.slice_ns());
  for (const LoadBoard::Row& row : board_->rows) {
    took_ns = std::max(took_ns, Nanos(row.ended) - board_->begin_ns);
  }
  return static_cast<double>(took_ns) / 1e9;
}

}  // namespace clew::bench
