// A child that is traced stops at its signal, its register is read, and it goes
// on without the signal: ptrace(2).
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    raise(SIGUSR1);
    _exit(4);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
  struct user_regs_struct registers;
  CHECK(ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0);
  CHECK(registers.rsp != 0);
  CHECK(ptrace(PTRACE_CONT, child, NULL, 0) == 0);
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
  return Ok();
}
