// Answers lines on its standard input by "pong", as long as handlers of signals
// run on the alternate stack of their thread, with the signals blocked that are
// to be, and all of that is told as it was set. There are two threads, neither
// of which ends; at each line the one lets a signal come to both, and to itself
// in its handler. "f" is answered by a child process.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kStackBytes = 64 << 10 };

static char stacks[2][kStackBytes] __attribute__((aligned(64)));
static __thread const char* own_stack;
static volatile sig_atomic_t handled[2];
static volatile sig_atomic_t wrong;

static int is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  return sigismember(&blocked, signal);
}

// What the kernel says of the alternate stack.
static int is_told(int flags) {
  stack_t told;
  return sigaltstack(NULL, &told) == 0 && told.ss_sp == own_stack &&
         told.ss_size == kStackBytes && told.ss_flags == flags;
}

static void check(int is_right) {
  if (!is_right) {
    wrong = 1;
  }
}

static void on_signal(int signal) {
  const char here = 0;
  check(&here > own_stack && &here < own_stack + kStackBytes);
  check(is_told(SS_ONSTACK));
  check(is_blocked(signal) && is_blocked(SIGHUP));
  ++handled[own_stack == stacks[0] ? 0 : 1];
  if (signal == SIGUSR1) {
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR2);
  }
}

static void take_stack(char* stack) {
  const stack_t wanted = {.ss_sp = stack, .ss_size = kStackBytes};
  own_stack = stack;
  check(sigaltstack(&wanted, NULL) == 0);
}

static void* wait_for_signals(void* tid) {
  take_stack(stacks[1]);
  *(volatile pid_t*)tid = gettid();
  for (;;) {
    check(is_told(0));
    usleep(500);
  }
  return NULL;
}

static void install(int signal) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigaddset(&action.sa_mask, SIGHUP);
  sigaction(signal, &action, NULL);
}

static int is_installed(int signal) {
  struct sigaction action;
  return sigaction(signal, NULL, &action) == 0 &&
         action.sa_handler == on_signal &&
         (action.sa_flags & (SA_ONSTACK | SA_SIGINFO | SA_NODEFER)) ==
             SA_ONSTACK &&
         sigismember(&action.sa_mask, SIGHUP) &&
         !sigismember(&action.sa_mask, SIGINT);
}

static void signal_both(pid_t other) {
  const int before[] = {handled[0], handled[1]};
  syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
  syscall(SYS_tgkill, getpid(), other, SIGUSR1);
  while (handled[0] != before[0] + 2 || handled[1] != before[1] + 2) {
    usleep(100);
  }
}

int main(void) {
  install(SIGUSR1);
  install(SIGUSR2);
  signal(SIGPIPE, SIG_IGN);
  take_stack(stacks[0]);
  volatile pid_t other = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_signals, (void*)&other) != 0) {
    return 2;
  }
  while (other == 0) {
    usleep(100);
  }
  char line[2];
  while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
    signal_both(other);
    check(is_told(0) && !is_blocked(SIGUSR1) && !is_blocked(SIGHUP));
    check(is_installed(SIGUSR1) && is_installed(SIGUSR2));
    struct sigaction ignored;
    check(sigaction(SIGPIPE, NULL, &ignored) == 0 &&
          ignored.sa_handler == SIG_IGN);
    const char* const answer = wrong ? "wrong\n" : "pong\n";
    const pid_t child = line[0] == 'f' ? fork() : -1;
    if (child > 0) {
      waitpid(child, NULL, 0);
      continue;
    }
    if (write(STDOUT_FILENO, answer, strlen(answer)) < 0) {
      return 2;
    }
    if (child == 0) {
      _exit(0);
    }
  }
  return 0;
}
