// Calls that signals end, and calls that are about signals.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "signals.h"

// Form 6.
static int ends[2];  // Of a pipe that is empty.
static int epoll_file;
static volatile long written_at;
static const struct timespec kLong = {.tv_sec = 100000};

static long DoRead(void) {
  char byte;
  return read(ends[0], &byte, 1);
}
static long DoPause(void) { return pause(); }
static long DoSleep(void) { return nanosleep(&kLong, NULL); }
static long DoSelect(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  return select(ends[0] + 1, &set, NULL, NULL, NULL);
}
static long DoPoll(void) {
  struct pollfd one = {.fd = ends[0], .events = POLLIN};
  return poll(&one, 1, -1);
}
static long DoEpoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll_file, &event, 1, -1);
}
static long DoTimedWait(void) {
  const sigset_t set = Set(Bit(SIGUSR2));
  return sigtimedwait(&set, NULL, &kLong);
}
static long DoSuspend(const sigset_t* set) { return sigsuspend(set); }
static long DoPpoll(const sigset_t* set) {
  struct pollfd one = {.fd = ends[0], .events = POLLIN};
  return ppoll(&one, 1, NULL, set);
}
static long DoPselect(const sigset_t* set) {
  return pselect(0, NULL, NULL, NULL, NULL, set);
}
static long DoEpollPwait(const sigset_t* set) {
  struct epoll_event event;
  return epoll_pwait(epoll_file, &event, 1, -1, set);
}

// Only read is begun again with SA_RESTART. Signals are sent until the call
// returns: the first ones may come too early for it.
static void RunInterrupted(void) {
  static long (*const kCalls[])(void) = {DoPause, DoSleep,     DoSelect, DoPoll,
                                         DoEpoll, DoTimedWait, DoRead};
  for (int i = 0; i < 13; ++i) {
    Install(SIGUSR1, OnCounted, i < 7 ? 0 : SA_RESTART, 0);
    struct Sender* sender = StartSender(SIGUSR1, 0, -1);
    const long result = kCalls[i % 7]();
    WantError("an interrupted call", result, EINTR);
    EndSender(sender);
  }
}

static void OnWrite(int signal, siginfo_t* info, void* context) {
  OnCounted(signal, info, context);
  if (handled[signal] == written_at) {
    Want("write", write(ends[1], "x", 1), 1);
  }
}

static void RunRestarted(long count) {
  written_at = count;
  Install(SIGUSR1, OnWrite, SA_RESTART, 0);
  struct Sender* sender = StartSender(SIGUSR1, 0, count);
  Want("a restarted read", DoRead(), 1);
  WantHandled("signals in a read", SIGUSR1, count);
  EndSender(sender);
}

// For the time of a call, nothing but SIGWINCH is blocked.
static void OnMasked(int signal, siginfo_t* info, void* context) {
  const ucontext_t* frame = context;
  Want("mask in a call's handler", Mask(),
       Bit(SIGWINCH) | Bit(SIGTERM) | Bit(signal));
  Want("uc_sigmask in it", Bits(&frame->uc_sigmask),
       Bit(SIGUSR1) | Bit(SIGHUP));
  OnCounted(signal, info, context);
}

static void RunMasked(long count) {
  static long (*const kCalls[])(const sigset_t*) = {DoSuspend, DoPpoll,
                                                    DoPselect, DoEpollPwait};
  const sigset_t set = Set(Bit(SIGWINCH));
  const uint64_t outside = Bit(SIGUSR1) | Bit(SIGHUP);
  SetMask(outside);
  for (int i = 0; i < 8; ++i) {
    Install(SIGUSR1, OnMasked, i < 4 ? 0 : SA_RESTART, Bit(SIGTERM));
    struct Sender* sender = StartSender(SIGUSR1, 0, count);
    for (long j = 0; j < count; ++j) {
      WantError("a call with a mask", kCalls[i % 4](&set), EINTR);
      WantHandled("signals in it", SIGUSR1, j + 1);
      Want("mask behind it", Mask(), outside);
    }
    EndSender(sender);
  }
  SetMask(0);
}

static void OnQueued(int signal, siginfo_t* info, void* context) {
  Want("si_code", info->si_code, SI_QUEUE);
  Want("si_value", (uintptr_t)info->si_value.sival_ptr, 0x123456789abcul);
  OnCounted(signal, info, context);
}

static void RunOwn(void) {
  const union sigval value = {.sival_ptr = (void*)0x123456789abcul};
  Install(SIGUSR1, OnCounted, 0, 0);
  Install(SIGUSR2, OnQueued, 0, 0);
  for (int i = 0; i < 100; ++i) {
    raise(SIGUSR1);
    WantHandled("raise", SIGUSR1, 3 * i + 1);
    kill(getpid(), SIGUSR1);
    WantHandled("kill", SIGUSR1, 3 * i + 2);
    pthread_kill(pthread_self(), SIGUSR1);
    WantHandled("pthread_kill", SIGUSR1, 3 * i + 3);
    sigqueue(getpid(), SIGUSR2, value);
    WantHandled("sigqueue", SIGUSR2, i + 1);
  }
}

static void RunPending(void) {
  sigset_t set;
  Install(SIGUSR1, OnCounted, 0, 0);
  Install(SIGUSR2, OnCounted, 0, Bit(SIGUSR1));
  SetMask(Bit(SIGUSR1) | Bit(SIGUSR2));
  raise(SIGUSR2);
  raise(SIGUSR1);
  raise(SIGUSR1);
  sigpending(&set);
  Want("pending", Bits(&set), Bit(SIGUSR1) | Bit(SIGUSR2));
  WantHandled("blocked", SIGUSR1, 0);
  SetMask(0);
  WantHandled("unblocked", SIGUSR1, 1);
  WantHandled("unblocked", SIGUSR2, 1);
  SetMask(Bit(SIGUSR2));
  siginfo_t info;
  raise(SIGUSR2);
  set = Set(Bit(SIGUSR2));
  Want("sigtimedwait", sigtimedwait(&set, &info, &kLong), SIGUSR2);
  Want("its si_pid", info.si_pid, getpid());
  SetMask(0);
  WantHandled("waited for", SIGUSR2, 1);
}

// The second handler runs between the first and what that had interrupted.
static volatile int step;
static uint64_t interrupted[2];

static void OnFirst(int signal, siginfo_t* info, void* context) {
  const greg_t* registers = ((const ucontext_t*)context)->uc_mcontext.gregs;
  interrupted[0] = registers[REG_RIP];
  interrupted[1] = registers[REG_RSP];
  raise(SIGUSR2);
  OnCounted(signal, info, context);
  WantHandled("blocked in a handler", SIGUSR2, 0);
  step = 1;
}

static void OnSecond(int signal, siginfo_t* info, void* context) {
  const greg_t* registers = ((const ucontext_t*)context)->uc_mcontext.gregs;
  Want("step", step, 1);
  Want("RIP", registers[REG_RIP], interrupted[0]);
  Want("RSP", registers[REG_RSP], interrupted[1]);
  OnCounted(signal, info, context);
}

static void RunAtReturn(void) {
  for (int i = 0; i < 20; ++i) {
    Install(SIGUSR1, OnFirst, 0, Bit(SIGUSR2));
    Install(SIGUSR2, OnSecond, 0, 0);
    step = 0;
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    step += 1;
    Want("step", step, 2);
    WantHandled("at the return", SIGUSR2, 1);
  }
}

// As the kernel has it.
struct Action {
  uint64_t handler;
  uint64_t flags;
  uint64_t restorer;
  uint64_t mask;
};

static long RawAction(long signal, const void* action, void* old) {
  return syscall(SYS_rt_sigaction, signal, action, old, 8);
}

static void RunActions(void) {
  struct sigaction now;
  Install(SIGUSR1, OnCounted, (int)SA_RESETHAND, 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, NULL, &now);
  Want("SA_RESETHAND", now.sa_handler == SIG_DFL, 1);
  const struct Action set = {0x123456789, SA_SIGINFO | SA_RESTART | 0x4000000,
                             0x98765432, ~0ul};
  struct Action found = {0};
  WantNone("rt_sigaction", RawAction(SIGUSR2, &set, NULL));
  WantNone("rt_sigaction", RawAction(SIGUSR2, NULL, &found));
  Want("handler", found.handler, set.handler);
  Want("flags", found.flags, set.flags);
  Want("restorer", found.restorer, set.restorer);
  Want("mask", found.mask, ~(Bit(SIGKILL) | Bit(SIGSTOP)));
  WantError("bad action", RawAction(SIGUSR2, (void*)8, NULL), EFAULT);
  const struct Action other = {.handler = 0x1111, .flags = SA_NODEFER};
  WantError("bad old action", RawAction(SIGUSR2, &other, (void*)8), EFAULT);
  signal(SIGUSR2, SIG_DFL);
  WantNone("SIGKILL", RawAction(SIGKILL, NULL, &found));
  const long invalid[] = {0, SIGKILL, SIGSTOP, 65, -1};
  for (int i = 0; i < 5; ++i) {
    WantError("invalid signal", RawAction(invalid[i], &other, NULL), EINVAL);
  }
  WantError("size", syscall(SYS_rt_sigaction, SIGUSR2, &other, NULL, 4),
            EINVAL);
}

static char own_stack[1 << 16];
static volatile unsigned stack_flags;

static void WantStack(const char* what, const stack_t* found, void* start,
                      size_t size, unsigned flags) {
  Want(what, (uintptr_t)found->ss_sp, (uintptr_t)start);
  Want(what, found->ss_size, size);
  Want(what, (unsigned)found->ss_flags, flags);
}

static void OnOwnStack(int signal, siginfo_t* info, void* context) {
  const ucontext_t* frame = context;
  const uintptr_t local = (uintptr_t)__builtin_frame_address(0);
  const stack_t none = {.ss_flags = SS_DISABLE};
  stack_t now;
  WantNone("sigaltstack", sigaltstack(NULL, &now));
  Want("local", local - (uintptr_t)own_stack < sizeof own_stack, 1);
  if (stack_flags != 0) {
    WantStack("disarmed", &now, NULL, 0, SS_DISABLE);
  } else {
    WantStack("in use", &now, own_stack, sizeof own_stack, SS_ONSTACK);
    WantError("changed in use", sigaltstack(&none, NULL), EPERM);
  }
  WantStack("uc_stack", &frame->uc_stack, own_stack, sizeof own_stack,
            stack_flags);
  OnCounted(signal, info, context);
}

static void RunStacks(void) {
  const unsigned kinds[] = {0, 1u << 31};  // SS_AUTODISARM.
  const stack_t none = {.ss_flags = SS_DISABLE};
  stack_t old;
  Install(SIGUSR1, OnOwnStack, SA_ONSTACK, 0);
  for (int i = 0; i < 4; ++i) {
    WantNone("sigaltstack", sigaltstack(NULL, &old));
    WantStack("none", &old, NULL, 0, SS_DISABLE);
    stack_flags = kinds[i % 2];
    const stack_t set = {.ss_sp = own_stack,
                         .ss_size = sizeof own_stack,
                         .ss_flags = (int)stack_flags};
    WantNone("sigaltstack", sigaltstack(&set, NULL));
    raise(SIGUSR1);
    WantHandled("on the stack", SIGUSR1, i + 1);
    WantNone("sigaltstack", sigaltstack(&none, &old));
    WantStack("behind it", &old, own_stack, sizeof own_stack, stack_flags);
  }
  const stack_t small = {.ss_sp = own_stack, .ss_size = 1000};
  const stack_t odd = {
      .ss_sp = own_stack, .ss_size = sizeof own_stack, .ss_flags = 0x1000};
  WantError("small", sigaltstack(&small, NULL), ENOMEM);
  WantError("flags", sigaltstack(&odd, NULL), EINVAL);
  WantError("bad", syscall(SYS_sigaltstack, 8, NULL), EFAULT);
  WantError("bad old", syscall(SYS_sigaltstack, NULL, 8), EFAULT);
}

// A timer that comes again: none is missed for good by a pause that comes late.
static void RunTimers(void) {
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  Install(SIGALRM, OnCounted, 0, 0);
  alarm(1000);
  Want("alarm", alarm(0) > 0, 1);
  WantNone("setitimer", setitimer(ITIMER_REAL, &often, NULL));
  while (handled[SIGALRM] < 5) {
    WantError("pause", pause(), EINTR);
  }
  WantNone("setitimer", setitimer(ITIMER_REAL, &never, NULL));
}

static void RunOthers(void) {
  const sigset_t none = Set(0);
  int status = 0;
  Install(SIGCHLD, OnRemembered, 0, 0);
  SetMask(Bit(SIGCHLD));
  const pid_t child = fork();
  if (child == 0) {
    _exit(7);
  }
  WantError("sigsuspend", sigsuspend(&none), EINTR);
  WantHandled("SIGCHLD", SIGCHLD, 1);
  Want("si_pid", last_info.si_pid, child);
  Want("si_status", last_info.si_status, 7);
  Want("si_code", last_info.si_code, CLD_EXITED);
  SetMask(0);
  Want("waitpid", waitpid(child, &status, 0), child);
  Install(SIGPIPE, OnCounted, 0, 0);
  close(ends[0]);
  WantError("write", write(ends[1], "x", 1), EPIPE);
  WantHandled("SIGPIPE", SIGPIPE, 1);
}

void Calls(long count) {
  WantNone("pipe", pipe(ends));
  epoll_file = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  WantNone("epoll_ctl", epoll_ctl(epoll_file, EPOLL_CTL_ADD, ends[0], &event));
  RunInterrupted();
  RunRestarted(count);
  RunMasked(count / 8 + 1);
  RunOwn();
  RunPending();
  RunAtReturn();
  RunActions();
  RunStacks();
  RunTimers();
  RunOthers();
  printf("calls: %ld signals, all calls as wanted\n", count);
}
