#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "common/byte_reader.h"
#include "common/os/child_process.h"
#include "common/os/deadline.h"
#include "common/sanitizer.h"
#include "constraints/verdict.h"
#include "solver/smt/z3_backend.h"

// Runs Z3 in a child: the answer comes back through a pipe.

namespace clew::solver {
namespace {

using constraints::Verdict;

constexpr int kOutOfMemory = 3;  // exit status of the child
constexpr double kGraceSeconds = 0.5;

void PutNumber(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Encode(const Z3Answer& answer) {
  std::string out;
  PutNumber(out, static_cast<uint64_t>(answer.verdict));
  PutNumber(out, answer.clauses);
  PutNumber(out, answer.cycles);
  PutNumber(out, answer.order.size());
  for (uint32_t thread : answer.order) {
    PutNumber(out, thread);
  }
  PutNumber(out, answer.unknowns.size());
  for (const auto& [var, value] : answer.unknowns) {
    PutNumber(out, var.as_int());
    PutNumber(out, value);
  }
  PutNumber(out, answer.conflicting.size());
  for (constraints::GroupId group : answer.conflicting) {
    PutNumber(out, group.as_int());
  }
  PutNumber(out, answer.why.size());
  return out + answer.why;
}

Result<Z3Answer> Decode(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "answer of the z3 process");
  Z3Answer answer;
  CLEW_ASSIGN_OR_RETURN(verdict, reader.Read<uint64_t>("verdict"));
  answer.verdict = static_cast<Verdict>(verdict);
  CLEW_ASSIGN_OR_RETURN(clauses, reader.Read<uint64_t>("clauses"));
  answer.clauses = clauses;
  CLEW_ASSIGN_OR_RETURN(cycles, reader.Read<uint64_t>("cycles"));
  answer.cycles = cycles;
  CLEW_ASSIGN_OR_RETURN(steps, reader.Read<uint64_t>("steps"));
  for (uint64_t i = 0; i < steps; ++i) {
    CLEW_ASSIGN_OR_RETURN(thread, reader.Read<uint64_t>("thread"));
    answer.order.push_back(static_cast<uint32_t>(thread));
  }
  CLEW_ASSIGN_OR_RETURN(unknowns, reader.Read<uint64_t>("unknowns"));
  for (uint64_t i = 0; i < unknowns; ++i) {
    CLEW_ASSIGN_OR_RETURN(var, reader.Read<uint64_t>("variable"));
    CLEW_ASSIGN_OR_RETURN(value, reader.Read<uint64_t>("value"));
    answer.unknowns.emplace_back(constraints::VarId(static_cast<uint32_t>(var)),
                                 value);
  }
  CLEW_ASSIGN_OR_RETURN(groups, reader.Read<uint64_t>("groups"));
  for (uint64_t i = 0; i < groups; ++i) {
    CLEW_ASSIGN_OR_RETURN(group, reader.Read<uint64_t>("group"));
    answer.conflicting.push_back(
        constraints::GroupId(static_cast<uint32_t>(group)));
  }
  CLEW_ASSIGN_OR_RETURN(chars, reader.Read<uint64_t>("length of reason"));
  CLEW_ASSIGN_OR_RETURN(why, reader.ReadText(chars, "reason"));
  answer.why = why;
  return answer;
}

void WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) {
      return;  // the parent has gone or will see a short answer
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
}

// Also where the parent may not end it: a confined one may send no signals.
void EndAfter(double seconds) {
  constexpr double kSecondsMax = 1e8;
  const double bounded = std::min(seconds, kSecondsMax);
  itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(bounded);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((bounded - std::floor(bounded)) * 1e6);
  signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

[[noreturn]] void RunChild(int fd, pid_t parent,
                           const constraints::ConstraintTrace& trace,
                           const Z3Options& options) {
  if (!DieWithParent(parent)) {
    _exit(1);
  }
  EndAfter(options.seconds + kGraceSeconds);
  // The runtime complains there when memory is refused; the parent reports it.
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDERR_FILENO);
  }
  if (!kAddressSanitizer) {
    (void)SetLimit(RLIMIT_AS, options.memory_bytes_max,
                   options.memory_bytes_max);
  }
  (void)SetLimit(RLIMIT_CORE, 0, 0);
  try {
    WriteAll(fd, Encode(SolveWithZ3InProcess(trace, options)));
  } catch (const std::bad_alloc&) {
    _exit(kOutOfMemory);
  }
  _exit(0);
}

// Everything up to the end of the pipe; false if the time is over first.
bool ReadUntil(int fd, const Deadline& deadline, std::vector<std::byte>& out) {
  std::array<std::byte, 65536> buffer;
  while (true) {
    pollfd ready = {fd, POLLIN, 0};
    const int count =
        poll(&ready, 1, static_cast<int>(deadline.seconds_left() * 1000) + 1);
    if (count == 0 || deadline.passed()) {
      return false;
    }
    if (count < 0) {
      continue;  // a signal
    }
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return true;  // what is there is looked at: a cut answer is refused
    }
    if (got > 0) {
      out.insert(out.end(), buffer.begin(), buffer.begin() + got);
    }
  }
}

Result<Z3Answer> Conclude(bool in_time, int status,
                          const std::vector<std::byte>& bytes) {
  Z3Answer answer;
  if (!in_time) {
    answer.why = "time limit";
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) {
    answer.why = "memory limit";
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    answer.why = "time limit";  // its own clock was the first
  } else if (WIFSIGNALED(status)) {
    // Z3 ends in several ways when memory is refused.
    answer.why =
        fmt::format("z3 ended by signal {} (memory limit?)", WTERMSIG(status));
  } else {
    return Decode(bytes);
  }
  return answer;
}

}  // namespace

Result<Z3Answer> SolveWithZ3(const constraints::ConstraintTrace& trace,
                             const Z3Options& options) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe for z3");
  }
  const Deadline deadline(options.seconds + kGraceSeconds);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    RunChild(pipe_ends[1], parent, trace, options);
  }
  const int fork_errno = errno;
  close(pipe_ends[1]);
  if (child < 0) {
    close(pipe_ends[0]);
    return SystemError(fork_errno, "cannot start a process for z3");
  }
  std::vector<std::byte> bytes;
  const bool in_time = ReadUntil(pipe_ends[0], deadline, bytes);
  close(pipe_ends[0]);
  if (!in_time) {
    kill(child, SIGKILL);
  }
  // Where SIGCHLD is ignored there is no status: what it wrote decides.
  const int status = WaitForChild(child).value_or(0);
  Result<Z3Answer> answer = Conclude(in_time, status, bytes);
  if (answer) {
    answer->seconds = options.seconds + kGraceSeconds - deadline.seconds_left();
  }
  return answer;
}

}  // namespace clew::solver
