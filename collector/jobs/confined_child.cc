#include "collector/jobs/confined_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "collector/jobs/confined_process.h"
#include "common/os/fd.h"

namespace clew::collector {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kErrorTailBytes = 4096;
constexpr int kLastWords_ms = 2000;

// Reads what is there. False: the end.
bool Drain(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  if (size > 0) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text.substr(text.rfind('\n') + 1);
}

// Waits for a child and collects what it says.
class Watch {
 public:
  Watch(const ConfinedChildRequest& request, ConfinedProcess& process)
      : request_(request),
        pid_fd_(process.pid_fd()),
        output_(process.TakeOutput()),
        error_(process.TakeErrors()),
        begin_(Clock::now()) {}

  // Until it ended, or has to be ended.
  void UntilEnd(ConfinedChildOutcome& outcome) {
    while (!ended_ && outcome.end == ConfinedChildEnd::kExited) {
      Step(outcome);
    }
    outcome.seconds = Elapsed();
  }
  // What is still in the pipes. REQUIRES: whoever writes to them was killed.
  void TakeRest(ConfinedChildOutcome& outcome) {
    while (outcome.end == ConfinedChildEnd::kExited && HasMore(output_)) {
      TakeOutput(outcome);
    }
    while (HasMore(error_)) {
      TakeError();
    }
    outcome.last_error = LastLine(error_tail_);
  }
  const std::string& error_tail() const { return error_tail_; }

 private:
  double Elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  void Step(ConfinedChildOutcome& outcome) {
    const double left_s = request_.limits.wall_s - Elapsed();
    if (left_s <= 0) {
      return Limit(outcome, fmt::format("wall-clock limit of {:g} s",
                                        request_.limits.wall_s));
    }
    // poll() passes over descriptors below 0.
    std::array<pollfd, 4> fds = {{{pid_fd_, POLLIN, 0},
                                  {output_.get(), POLLIN, 0},
                                  {error_.get(), POLLIN, 0},
                                  {request_.stop_fd, POLLIN, 0}}};
    const double wait_ms = std::min(std::ceil(left_s * 1000), 1e6);
    if (poll(fds.data(), fds.size(), static_cast<int>(wait_ms)) < 0) {
      return;  // EINTR
    }
    if (fds[1].revents != 0) {
      TakeOutput(outcome);
    }
    if (fds[2].revents != 0) {
      TakeError();
    }
    if (fds[3].revents != 0) {
      outcome.end = ConfinedChildEnd::kStopped;
    }
    ended_ = fds[0].revents != 0;
  }

  // The kernel may still be ending somebody who has the other end.
  static bool HasMore(const Fd& fd) {
    pollfd ready = {fd.get(), POLLIN, 0};
    return fd.get() >= 0 && poll(&ready, 1, kLastWords_ms) == 1;
  }

  static void Limit(ConfinedChildOutcome& outcome, std::string limit) {
    outcome.end = ConfinedChildEnd::kLimit;
    outcome.limit = std::move(limit);
  }

  void TakeOutput(ConfinedChildOutcome& outcome) {
    if (!Drain(output_.get(), outcome.output)) {
      output_.Close();
    }
    if (outcome.output.size() > request_.limits.output_bytes) {
      outcome.output.resize(request_.limits.output_bytes);
      Limit(outcome, fmt::format("output limit of {} bytes",
                                 request_.limits.output_bytes));
    }
  }

  void TakeError() {
    if (!Drain(error_.get(), error_tail_)) {
      error_.Close();
    }
    if (error_tail_.size() > kErrorTailBytes) {
      error_tail_.erase(0, error_tail_.size() - kErrorTailBytes);
    }
  }

  const ConfinedChildRequest& request_;
  const int pid_fd_;
  Fd output_;
  Fd error_;
  const Clock::time_point begin_;
  std::string error_tail_;
  bool ended_ = false;
};

// By its own words: its peak of memory, as the kernel tells it, is that of the
// collector where this was larger (it is kept through fork and exec).
bool RanOutOfMemory(const std::string& errors) {
  constexpr std::array<const char*, 3> kWords = {"bad_alloc", "out of memory",
                                                 "Cannot allocate memory"};
  return std::ranges::any_of(kWords, [&](const char* words) {
    return errors.find(words) != std::string::npos;
  });
}

// The limit that ended it; empty: none.
std::string LimitBehind(const ConfinedChildLimits& limits,
                        const std::string& errors,
                        const ConfinedProcess::Ending& ending) {
  const int signal = WIFSIGNALED(ending.status) ? WTERMSIG(ending.status) : 0;
  if (signal == SIGXCPU ||
      (signal == SIGKILL &&
       ending.cpu_seconds >= static_cast<double>(limits.cpu_s))) {
    return fmt::format("CPU time limit of {} s", limits.cpu_s);
  }
  if (signal == SIGXFSZ) {
    return fmt::format("limit of {} bytes for a file", limits.file_bytes);
  }
  if (ending.status != 0 && RanOutOfMemory(errors)) {
    return fmt::format("memory limit of {} bytes", limits.memory_bytes);
  }
  return "";
}

void SetEnd(ConfinedChildOutcome& outcome, const ConfinedChildLimits& limits,
            const std::string& errors, const ConfinedProcess::Ending& ending) {
  outcome.cpu_seconds = ending.cpu_seconds;
  if (outcome.end != ConfinedChildEnd::kExited) {
    return;
  }
  outcome.limit = LimitBehind(limits, errors, ending);
  if (!outcome.limit.empty()) {
    outcome.end = ConfinedChildEnd::kLimit;
  } else if (WIFSIGNALED(ending.status)) {
    outcome.end = ConfinedChildEnd::kSignal;
    outcome.signal = WTERMSIG(ending.status);
  } else {
    outcome.exit_status = WEXITSTATUS(ending.status);
  }
}

}  // namespace

Result<ConfinedChildOutcome> RunConfinedChild(
    const ConfinedChildRequest& request) {
  CLEW_ASSIGN_OR_RETURN(process, ConfinedProcess::Start(request));
  ConfinedChildOutcome outcome;
  Watch watch(request, process);
  watch.UntilEnd(outcome);
  const ConfinedProcess::Ending ending = process.End();
  watch.TakeRest(outcome);
  SetEnd(outcome, request.limits, watch.error_tail(), ending);
  return outcome;
}

}  // namespace clew::collector
