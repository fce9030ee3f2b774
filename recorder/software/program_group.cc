#include "recorder/software/program_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "common/os/process_state.h"

namespace clew::recorder {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGQUIT, SIGTSTP};

// For the handler: whom signals are passed on to; 0: nobody.
std::atomic<pid_t> g_passed_on_to = 0;
std::array<struct sigaction, kPassedOn.size()> g_actions_before;

void PassOn(int signal) {
  const int error = errno;
  if (const pid_t group = g_passed_on_to; group > 0) {
    kill(-group, signal);
  }
  errno = error;
}

void SetActions() {
  struct sigaction action = {};
  action.sa_handler = PassOn;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kPassedOn.size(); ++i) {
    sigaction(kPassedOn[i], &action, &g_actions_before[i]);
  }
}

void RestoreActions() {
  for (size_t i = 0; i < kPassedOn.size(); ++i) {
    sigaction(kPassedOn[i], &g_actions_before[i], nullptr);
  }
}

// A group in the background may do so only where SIGTTOU is blocked.
void SetForeground(pid_t group) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTTOU);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  (void)tcsetpgrp(STDIN_FILENO, group);  // the terminal may be gone
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

bool IsStopByTerminal(int status) {
  const int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

bool IsAlive(pid_t process) {
  const char state = ProcessState(fmt::format("/proc/{}/stat", process));
  return state != 0 && state != 'Z';
}

}  // namespace

Result<ProgramGroup> ProgramGroup::Make() {
  ProgramGroup made;
  if (getpgrp() != getpid()) {
    made.leader_ = fork();
    if (made.leader_ == 0) {
      setpgid(0, 0);
      _exit(0);
    }
    if (made.leader_ < 0) {
      return SystemError(errno, "cannot make a process group");
    }
    siginfo_t ended = {};
    while (waitid(P_PID, static_cast<id_t>(made.leader_), &ended,
                  WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
  }
  SetActions();
  made.owns_actions_ = true;
  return made;
}

ProgramGroup::ProgramGroup(ProgramGroup&& other) noexcept
    : leader_(std::exchange(other.leader_, 0)),
      program_(std::exchange(other.program_, 0)),
      gave_terminal_(std::exchange(other.gave_terminal_, false)),
      owns_actions_(std::exchange(other.owns_actions_, false)) {}

ProgramGroup::~ProgramGroup() {
  TakeTerminal();
  if (owns_actions_) {
    g_passed_on_to = 0;
    RestoreActions();
  }
  if (leader_ > 0) {
    waitpid(leader_, nullptr, 0);
  }
}

// The terminal is given here, too: the program may read it at once.
void ProgramGroup::EnterInChild() const {
  const pid_t before = getpgrp();
  setpgid(0, leader_);
  if (tcgetpgrp(STDIN_FILENO) == before) {
    SetForeground(getpgrp());
  }
  RestoreActions();
}

void ProgramGroup::Add(pid_t program) {
  program_ = program;
  // Fails where the child has done so and is another program by now.
  (void)setpgid(program, group());
  g_passed_on_to = group();
  GiveTerminal();
}

void ProgramGroup::GiveTerminal() {
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  gave_terminal_ = foreground == getpgrp() || foreground == group();
  if (foreground == getpgrp()) {
    SetForeground(group());
  }
}

void ProgramGroup::TakeTerminal() {
  if (std::exchange(gave_terminal_, false)) {
    SetForeground(getpgrp());
  }
}

Result<int> ProgramGroup::Wait() {
  int status = 0;
  for (;;) {
    if (waitpid(program_, &status, WUNTRACED) < 0) {
      if (errno != EINTR) {
        return SystemError(errno,
                           fmt::format("cannot wait for child {}", program_));
      }
    } else if (!WIFSTOPPED(status)) {
      TakeTerminal();
      return status;
    } else if (IsStopByTerminal(status)) {
      StopWithProgram();
    }
  }
}

// Where nobody could let the recorder go on, the kernel does not stop it, and
// neither the program.
void ProgramGroup::StopWithProgram() {
  TakeTerminal();
  struct sigaction stop = {};
  struct sigaction before = {};
  stop.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &stop, &before);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &before, nullptr);
  GiveTerminal();
  kill(-group(), SIGCONT);
}

std::vector<pid_t> ProgramGroup::Left() const {
  std::vector<pid_t> left;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto parsed =
        std::from_chars(name.data(), name.data() + name.size(), process);
    const bool is_process = parsed.ec == std::errc() && process > 0;
    if (is_process && getpgid(process) == group() && IsAlive(process)) {
      left.push_back(process);
    }
  }
  std::ranges::sort(left);
  return left;
}

void ProgramGroup::End() const { kill(-group(), SIGKILL); }

}  // namespace clew::recorder
