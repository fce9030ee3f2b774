#include "recorder/software/seed_worker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "common/os/child_process.h"
#include "common/os/deadline.h"
#include "common/os/process_state.h"
#include "common/text/signal_text.h"
#include "recorder/software/answer.h"

namespace clew::recorder {
namespace {

// A process that was killed goes as soon as the kernel lets it. Longer: it is
// left to go by itself.
constexpr double kEndMax_s = 60;

// A run by the tracer or by steps stays on the CPU where it begins
// (TraceeLaunch::host_cpu). Where it cannot be had, the run is slower.
void TakeOwnCpu(size_t index) {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) {
    return;
  }
  size_t to_pass = index % static_cast<size_t>(CPU_COUNT(&cpus));
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus) && to_pass-- == 0) {
      CPU_ZERO(&cpus);
      CPU_SET(cpu, &cpus);
      (void)sched_setaffinity(0, sizeof(cpus), &cpus);
      return;
    }
  }
}

bool TakeNoInput() {
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return nothing.is_open() && dup2(nothing.get(), STDIN_FILENO) >= 0;
}

[[noreturn]] void Work(RecordOptions options, int socket) {
  const std::string folder = options.output;
  options.keep_only_if_failed = true;
  while (const auto seed = ReceiveValue<uint64_t>(socket)) {
    options.seed = *seed;
    options.output = folder + "/" + BundleOfSeed(*seed);
    if (!SendAnswer(socket, Record(options))) {
      break;
    }
  }
  _exit(kExitOk);
}

// Kills whatever is in the session, until a look finds nobody alive: what was
// killed may have made others since the look before.
void EndSession(pid_t session) {
  constexpr std::chrono::milliseconds kPause(1);
  const clew::Deadline limit(kEndMax_s);
  bool lives = true;
  while (lives && !limit.passed()) {
    lives = false;
    for (const pid_t process : FindProcesses(
             [session](pid_t any) { return getsid(any) == session; })) {
      // What looks ended may have threads (all but its first). What is another
      // user's is not ours to end.
      const bool is_alive = IsAlive(process);
      lives = (kill(process, SIGKILL) == 0 && is_alive) || lives;
    }
    if (lives) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace

std::string BundleOfSeed(uint64_t seed) { return fmt::format("seed{}", seed); }

Result<SeedWorker> SeedWorker::Start(const RecordOptions& options, size_t index,
                                     const std::function<void()>& in_child) {
  CLEW_ASSIGN_OR_RETURN(helper, ForkHelper("a run of --jobs"));
  if (helper.process != 0) {
    return SeedWorker(helper.process, std::move(helper.socket));
  }
  in_child();
  if (setsid() < 0 || !TakeNoInput()) {
    _exit(kExitEnvironment);
  }
  if (options.source != SoftwareSource::kQemu && !options.is_free) {
    TakeOwnCpu(index);
  }
  Work(options, helper.socket.get());
}

SeedWorker::SeedWorker(SeedWorker&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      socket_(std::move(other.socket_)),
      seed_(other.seed_),
      answer_(std::move(other.answer_)) {}

// One that has died is found by Receive.
void SeedWorker::Begin(uint64_t seed) {
  seed_ = seed;
  (void)send(socket_.get(), &seed, sizeof(seed), MSG_NOSIGNAL);
}

std::optional<Result<RecordOutcome>> SeedWorker::Receive() {
  if (!answer_.ReadFrom(socket_.get(), false)) {
    return std::unexpected(HowItDied());
  }
  return answer_.Take();
}

// It has closed its socket; so it is about to end, if it has not.
Error SeedWorker::HowItDied() const {
  kill(process_, SIGKILL);
  siginfo_t ended = {};
  while (waitid(P_PID, static_cast<id_t>(process_), &ended,
                WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  const std::string how =
      ended.si_code == CLD_EXITED
          ? fmt::format("with exit status {}", ended.si_status)
          : "by " + SignalText(ended.si_status);
  return Error{
      .code = ErrorCode::kSystem,
      .message = fmt::format(
          "the process that recorded seed {} ended {} and told no outcome{}",
          seed_, how,
          ended.si_code != CLD_EXITED && ended.si_status == SIGKILL
              ? "; if memory ran out, give fewer --jobs"
              : "")};
}

// The worker is reaped last: its id is the session's, and nobody else's
// meanwhile.
void SeedWorker::End() {
  if (process_ == 0) {
    return;
  }
  kill(process_, SIGKILL);
  EndSession(process_);
  (void)WaitForChild(process_);
  process_ = 0;
  socket_.Close();
}

}  // namespace clew::recorder
