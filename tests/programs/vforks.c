// A process that has the program's memory, made by vfork(2) or clone(2), does
// what the argument says; the program puts out what came of it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kShortUs = 100000, kLongUs = 300000 };

static volatile int seen;

static void Note(int number) { seen = number; }

static int StatusOf(pid_t process) {
  int status = -1;
  waitpid(process, &status, 0);
  return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
}

// What the process does that vfork made.
static void Killed(void) { kill(getpid(), SIGKILL); }
static void Faults(void) { *(volatile int*)8 = 1; }
static void Aborts(void) { abort(); }
static void Handles(void) {
  raise(SIGUSR1);
  _exit(seen);
}
static void Defaults(void) {
  signal(SIGUSR1, SIG_DFL);
  seen = 5;
}
static void Waits(void) {
  alarm(1);
  for (;;) {
    pause();
  }
}
static void CannotRun(void) {
  execl("/no/such/program", "none", NULL);
  seen = errno;
}
static void Vforks(void) {
  const pid_t process = vfork();
  if (process == 0) {
    seen = 4;
    _exit(1);
  }
  _exit(10 * StatusOf(process) + seen);
}
static void Forks(void) {
  const pid_t process = fork();
  if (process == 0) {
    seen = 4;
    _exit(7);
  }
  _exit(StatusOf(process));
}

static int ends[2];

static void Writes(void) {
  dup2(ends[1], 1);
  close(ends[0]);
  close(ends[1]);
  if (write(1, "hello", 5) != 5) {
    _exit(1);
  }
}

static const struct {
  const char* name;
  void (*act)(void);
} kActs[] = {{"killed", Killed},        {"faults", Faults},
             {"aborts", Aborts},        {"handles", Handles},
             {"defaults", Defaults},    {"waits", Waits},
             {"cannot_run", CannotRun}, {"vforks", Vforks},
             {"forks", Forks},          {"writes", Writes}};

static void Vfork(void (*act)(void)) {
  char text[8] = "";
  if (pipe(ends) != 0) {
    exit(1);
  }
  signal(SIGUSR1, Note);
  const pid_t process = vfork();
  if (process == 0) {
    act();
    _exit(0);
  }
  const int status = StatusOf(process);
  close(ends[1]);
  if (read(ends[0], text, sizeof text - 1) < 0) {
    exit(1);
  }
  const int written = seen;
  raise(SIGUSR1);
  printf("status %d, seen %d, then %d, read \"%s\"\n", status, written, seen,
         text);
}

// Both run at once, in one memory.
static int Answer(void* argument) {
  while (seen != 1) {
    sched_yield();
  }
  seen = 2;
  (void)argument;
  return 9;
}
static void Clone(void) {
  static char stack[65536] __attribute__((aligned(16)));
  const pid_t process =
      clone(Answer, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
  seen = 1;
  while (seen != 2) {
    sched_yield();
  }
  printf("status %d, seen %d\n", StatusOf(process), seen);
}

static void* SleepLong(void* argument) {
  const pid_t process = vfork();
  if (process == 0) {
    usleep(kLongUs);
    _exit(3);
  }
  printf("status %d\n", StatusOf(process));
  return argument;
}

int main(int argc, char** argv) {
  pthread_t thread;
  setvbuf(stdout, NULL, _IONBF, 0);
  if (argc != 2) {
    return 2;
  }
  const char* what = argv[1];
  for (size_t i = 0; i < sizeof kActs / sizeof kActs[0]; ++i) {
    if (strcmp(what, kActs[i].name) == 0) {
      Vfork(kActs[i].act);
      return 0;
    }
  }
  if (strcmp(what, "clone") == 0) {
    Clone();
    return 0;
  }
  // The others are while a process of another thread sleeps.
  pthread_create(&thread, NULL, SleepLong, NULL);
  usleep(kShortUs);
  if (strcmp(what, "exit_meanwhile") == 0) {
    return 5;
  }
  if (strcmp(what, "abort_meanwhile") == 0) {
    abort();
  }
  if (strcmp(what, "exec_meanwhile") == 0) {
    execl("/bin/echo", "echo", "another program", NULL);
  }
  pthread_join(thread, NULL);
  return 0;
}
