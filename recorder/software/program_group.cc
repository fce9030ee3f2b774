#include "recorder/software/program_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "common/os/process_state.h"

namespace clew::recorder {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGQUIT, SIGTSTP};

// For the handler: whom signals are passed on to; 0: nobody.
std::atomic<pid_t> g_passed_on_to = 0;
std::array<struct sigaction, kPassedOn.size()> g_actions_before;
// A file that would get too long is an error to be told, not the recorder's
// end.
struct sigaction g_long_file_before;

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
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, &g_long_file_before);
}

void RestoreActions() {
  for (size_t i = 0; i < kPassedOn.size(); ++i) {
    sigaction(kPassedOn[i], &g_actions_before[i], nullptr);
  }
  sigaction(SIGXFSZ, &g_long_file_before, nullptr);
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

bool IsOfTerminal(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

std::vector<pid_t> MembersOf(pid_t group) {
  return FindProcesses([group](pid_t process) {
    return getpgid(process) == group && IsAlive(process);
  });
}

volatile sig_atomic_t g_went_on = 0;

// Returns whether the recorder was stopped, and let go on. The kernel does not
// stop a process that nobody in its session could let go on.
bool StopUntilLetGoOn() {
  struct sigaction stop = {};
  struct sigaction go_on = {};
  struct sigaction stop_before = {};
  struct sigaction go_on_before = {};
  stop.sa_handler = SIG_DFL;
  go_on.sa_handler = [](int) { g_went_on = 1; };
  g_went_on = 0;
  sigaction(SIGCONT, &go_on, &go_on_before);
  sigaction(SIGTSTP, &stop, &stop_before);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &stop_before, nullptr);
  sigaction(SIGCONT, &go_on_before, nullptr);
  return g_went_on != 0;
}

}  // namespace

Result<ProgramGroup> ProgramGroup::Make() {
  ProgramGroup made;
  made.is_shared_ = MembersOf(getpgrp()).size() > 1;
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
      is_shared_(other.is_shared_),
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
  if (!is_shared_ && tcgetpgrp(STDIN_FILENO) == before) {
    SetForeground(getpgrp());
  }
  RestoreActions();
}

void ProgramGroup::Add(pid_t program) {
  program_ = program;
  // Fails where the child has done so and is another program by now.
  (void)setpgid(program, group());
  g_passed_on_to = group();
  if (!is_shared_) {
    GiveTerminal();
  }
}

bool ProgramGroup::GiveTerminal() {
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  gave_terminal_ = foreground == getpgrp() || foreground == group();
  if (foreground == getpgrp()) {
    SetForeground(group());
  }
  return gave_terminal_;
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
    } else {
      OnStop(WSTOPSIG(status));
    }
  }
}

// A program that asked for the terminal (SIGTTIN, SIGTTOU) gets it if it is the
// recorder's to give.
void ProgramGroup::OnStop(int signal) {
  if (!IsOfTerminal(signal)) {
    return;
  }
  const bool asks = signal != SIGTSTP && !gave_terminal_;
  if (asks && GiveTerminal()) {
    kill(-group(), SIGCONT);
  } else {
    StopWithProgram(asks);
  }
}

// Where nobody can let the recorder go on, the program goes on at once. If it
// asked for the terminal, it would ask again for ever; it is told what the
// kernel tells a stopped group of which nobody is left who could let it go on.
void ProgramGroup::StopWithProgram(bool asked_for_terminal) {
  const bool had_terminal = gave_terminal_;
  TakeTerminal();
  if (!StopUntilLetGoOn() && asked_for_terminal) {
    kill(-group(), SIGHUP);
  }
  if (had_terminal || !is_shared_) {
    GiveTerminal();
  }
  kill(-group(), SIGCONT);
}

std::vector<pid_t> ProgramGroup::Left() const { return MembersOf(group()); }

void ProgramGroup::End() const { kill(-group(), SIGKILL); }

}  // namespace clew::recorder
