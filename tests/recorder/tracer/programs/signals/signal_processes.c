// Signals of processes and threads that start and end.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"

// Form 7.
enum { kRaisers = 4, kRaised = 500 };

static __thread volatile long own_count;
static _Atomic int ended;
static volatile pid_t forked;

static void WantStatus(const char* what, pid_t child, int wanted) {
  int status = 0;
  Want(what, waitpid(child, &status, 0), child);
  Want(what, status, wanted);
}

enum { kExit = 1 << 8 };  // The status is `kExit * code`.

static void RunSentToChild(void) {
  const sigset_t none = Set(0);
  Install(SIGUSR1, OnRemembered, 0, 0);
  SetMask(Bit(SIGUSR1));
  const pid_t child = fork();
  if (child == 0) {
    WantError("sigsuspend", sigsuspend(&none), EINTR);
    WantHandled("in the child", SIGUSR1, 1);
    _exit(last_info.si_pid == getppid() ? 3 : 4);
  }
  kill(child, SIGUSR1);
  WantStatus("a child that was sent a signal", child, kExit * 3);
  SetMask(0);
  WantHandled("the child's", SIGUSR1, 0);
}

static void OnOther(int signal, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  handled[signal] += 1000;
}

static void RunChildRaises(void) {
  Install(SIGUSR1, OnCounted, 0, 0);
  raise(SIGUSR1);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGUSR1);
    WantHandled("in the child", SIGUSR1, 2);
    Install(SIGUSR1, OnOther, 0, 0);
    raise(SIGUSR1);
    WantHandled("in the child", SIGUSR1, 1000);
    _exit(5);
  }
  WantStatus("a child that raises", child, kExit * 5);
  raise(SIGUSR1);
  WantHandled("in the parent", SIGUSR1, 2);
}

static void RunVfork(void) {
  const struct sigaction ignored = {.sa_handler = SIG_IGN};
  char* const arguments[] = {"true", NULL};
  Install(SIGUSR1, OnCounted, 0, 0);
  Install(SIGUSR2, OnCounted, 0, 0);
  for (int i = 1; i <= 5; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      struct sigaction other = {.sa_sigaction = OnOther};
      sigaction(SIGUSR1, &other, NULL);
      sigaction(SIGUSR2, &ignored, NULL);
      execve("/bin/true", arguments, environ);
      _exit(127);
    }
    WantStatus("vfork", child, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    WantHandled("after vfork", SIGUSR1, i);
    WantHandled("after vfork", SIGUSR2, i);
  }
}

// A shell that sends itself SIGUSR1, and gets to its end if that is ignored.
static void Spawn(const char* what, int defaulted, int wanted) {
  char* const arguments[] = {"sh", "-c", "kill -USR1 $$; exit 9", NULL};
  const sigset_t set = Set(Bit(SIGUSR1));
  posix_spawnattr_t attributes;
  pid_t child = 0;
  posix_spawnattr_init(&attributes);
  if (defaulted) {
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  }
  WantNone("posix_spawn", posix_spawn(&child, "/bin/sh", NULL, &attributes,
                                      arguments, environ));
  posix_spawnattr_destroy(&attributes);
  WantStatus(what, child, wanted);
}

static void RunSpawn(void) {
  Install(SIGUSR1, OnCounted, 0, 0);
  Spawn("spawned with a handler", 0, SIGUSR1);
  Spawn("spawned with a handler and setsigdef", 1, SIGUSR1);
  raise(SIGUSR1);
  WantHandled("after posix_spawn", SIGUSR1, 1);
  signal(SIGUSR1, SIG_IGN);
  Spawn("spawned with it ignored", 0, kExit * 9);
  Spawn("spawned with it ignored and setsigdef", 1, SIGUSR1);
  raise(SIGUSR1);
}

static void RunPendingFork(void) {
  Install(SIGUSR1, OnCounted, 0, 0);
  SetMask(Bit(SIGUSR1));
  raise(SIGUSR1);
  const pid_t child = fork();
  if (child == 0) {
    sigset_t set;
    sigpending(&set);
    Want("pending in the child", Bits(&set), 0);
    SetMask(0);
    WantHandled("pending in the child", SIGUSR1, 0);
    _exit(6);
  }
  WantStatus("a child with nothing pending", child, kExit * 6);
  SetMask(0);
  WantHandled("pending in the parent", SIGUSR1, 1);
}

static void OnFork(int signal, siginfo_t* info, void* context) {
  forked = fork();
  OnCounted(signal, info, context);
}

static void RunForkInHandler(int flags) {
  UseAlternate();
  Install(SIGUSR1, OnFork, flags, Bit(SIGUSR2));
  raise(SIGUSR1);
  Want("mask after a fork in a handler", Mask(), 0);
  if (forked == 0) {
    Install(SIGUSR1, OnCounted, 0, 0);
    raise(SIGUSR1);
    WantHandled("in the child", SIGUSR1, 1);
    _exit(8);
  }
  WantStatus("a fork in a handler", forked, kExit * 8);
}

static void OnThreadCount(int signal, siginfo_t* info, void* context) {
  ++own_count;
  OnCounted(signal, info, context);
}

static void* Raise(void* argument) {
  for (long i = 1; i <= kRaised; ++i) {
    raise(SIGUSR1);
    Want("signals of a thread", own_count, i);
  }
  return argument;
}

static void RunRaisers(void) {
  pthread_t threads[kRaisers];
  Install(SIGUSR1, OnThreadCount, 0, 0);
  for (int i = 0; i < kRaisers; ++i) {
    WantNone("pthread_create", pthread_create(&threads[i], NULL, Raise, NULL));
  }
  for (int i = 0; i < kRaisers; ++i) {
    pthread_join(threads[i], NULL);
  }
  WantHandled("raised", SIGUSR1, (long)kRaisers * kRaised);
}

static void* Short(void* argument) {
  Spin(100);
  return argument;
}

// Stays itself, and makes threads that end at once.
static void* MakeShort(void* argument) {
  while (!ended) {
    pthread_t thread;
    WantNone("pthread_create", pthread_create(&thread, NULL, Short, NULL));
    pthread_join(thread, NULL);
  }
  return argument;
}

// The main thread has them blocked: the others, which come and go, get them.
static void RunExits(long count) {
  pthread_t maker;
  Install(SIGUSR1, OnCounted, 0, 0);
  WantNone("pthread_create", pthread_create(&maker, NULL, MakeShort, NULL));
  SetMask(Bit(SIGUSR1));
  for (long i = 0; i < count; ++i) {
    kill(getpid(), SIGUSR1);
    for (long turn = i; turn == i || handled[SIGUSR1] <= i; ++turn) {
      Delay(turn);
    }
  }
  ended = 1;
  pthread_join(maker, NULL);
  SetMask(0);
  WantHandled("sent to the process", SIGUSR1, count);
}

void Processes(long count) {
  RunSentToChild();
  RunChildRaises();
  RunVfork();
  RunSpawn();
  RunPendingFork();
  RunForkInHandler(0);
  RunForkInHandler(SA_ONSTACK);
  RunRaisers();
  RunExits(count);
  printf("processes: %ld signals, none lost\n", count);
}
