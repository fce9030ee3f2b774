// Waits with the timer or time limit that its first argument names, as often as
// the second says; exits with 0 if none ended early by the clock that it reads.
// Puts out how late they were.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const int64_t kSecond = 1000000000;
static volatile sig_atomic_t alarms;
static volatile unsigned sink;

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "timers: not so: %s\n", what);
    exit(1);
  }
}

static int64_t Now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

static struct timespec At(int64_t ns) {
  return (struct timespec){.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
}

static void OnAlarm(int signal) {
  (void)signal;
  ++alarms;
}

static void Descriptor(clockid_t clock, int64_t limit, int absolute) {
  const int fd = timerfd_create(clock, 0);
  const struct itimerspec set = {.it_value =
                                     At(absolute ? Now(clock) + limit : limit)};
  uint64_t count = 0;
  timerfd_settime(fd, absolute ? TFD_TIMER_ABSTIME : 0, &set, NULL);
  Check(read(fd, &count, sizeof(count)) == sizeof(count), "it expires");
  close(fd);
}

static void Periodic(int64_t limit) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec set = {.it_value = At(limit / 4),
                                 .it_interval = At(limit / 4)};
  timerfd_settime(fd, 0, &set, NULL);
  for (uint64_t count = 0, all = 0; all < 4; all += count) {
    Check(read(fd, &count, sizeof(count)) == sizeof(count), "it expires");
  }
  struct itimerspec left;
  timerfd_gettime(fd, &left);
  Check(left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= limit / 4,
        "no more is left than was set");
  close(fd);
}

// Until there were more alarms than `before` the timer was set.
static void Spin(int before) {
  while (alarms == before) {
    ++sink;
  }
}

static void RealTimer(int64_t limit) {
  const struct itimerval set = {.it_value = {.tv_usec = limit / 1000}};
  struct itimerval left;
  const int before = alarms;
  signal(SIGALRM, OnAlarm);
  setitimer(ITIMER_REAL, &set, NULL);
  getitimer(ITIMER_REAL, &left);
  Check(left.it_value.tv_sec == 0 && left.it_value.tv_usec <= limit / 1000,
        "no more is left than was set");
  Spin(before);
}

static void Posix(clockid_t clock, int64_t limit, int absolute) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGALRM};
  timer_t timer;
  const int before = alarms;
  signal(SIGALRM, OnAlarm);
  Check(timer_create(clock, &event, &timer) == 0, "timer_create");
  const struct itimerspec set = {.it_value =
                                     At(absolute ? Now(clock) + limit : limit)};
  timer_settime(timer, absolute ? TIMER_ABSTIME : 0, &set, NULL);
  Spin(before);
  timer_delete(timer);
}

static void Select(int64_t limit, int with_timespec) {
  struct timeval time = {.tv_usec = limit / 1000};
  const struct timespec same = At(limit);
  Check((with_timespec ? pselect(0, NULL, NULL, NULL, &same, NULL)
                       : select(0, NULL, NULL, NULL, &time)) == 0,
        "nothing is ready");
}

static void Epoll(int64_t limit) {
  const int loop = epoll_create1(0);
  struct epoll_event event;
  Check(epoll_wait(loop, &event, 1, (int)(limit / 1000000)) == 0, "none");
  close(loop);
}

static void Semaphore(int64_t limit) {
  sem_t semaphore;
  const struct timespec until = At(Now(CLOCK_REALTIME) + limit);
  sem_init(&semaphore, 0, 0);
  Check(sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT, "over");
}

static void Signal(int64_t limit) {
  const struct timespec time = At(limit);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  Check(sigtimedwait(&set, NULL, &time) == -1 && errno == EAGAIN, "over");
}

static void Wait(const char* kind, int64_t limit) {
  const struct timespec time = At(limit);
  if (strcmp(kind, "descriptor") == 0) {
    Descriptor(CLOCK_MONOTONIC, limit, 0);
  } else if (strcmp(kind, "descriptor_until") == 0) {
    Descriptor(CLOCK_MONOTONIC, limit, 1);
  } else if (strcmp(kind, "descriptor_until_day") == 0) {
    Descriptor(CLOCK_REALTIME, limit, 1);
  } else if (strcmp(kind, "periodic") == 0) {
    Periodic(limit);
  } else if (strcmp(kind, "itimer") == 0) {
    RealTimer(limit);
  } else if (strcmp(kind, "posix") == 0) {
    Posix(CLOCK_MONOTONIC, limit, 0);
  } else if (strcmp(kind, "posix_until") == 0) {
    Posix(CLOCK_REALTIME, limit, 1);
  } else if (strcmp(kind, "poll") == 0) {
    Check(poll(NULL, 0, (int)(limit / 1000000)) == 0, "nothing is ready");
  } else if (strcmp(kind, "ppoll") == 0) {
    Check(ppoll(NULL, 0, &time, NULL) == 0, "nothing is ready");
  } else if (strcmp(kind, "select") == 0) {
    Select(limit, 0);
  } else if (strcmp(kind, "pselect") == 0) {
    Select(limit, 1);
  } else if (strcmp(kind, "epoll") == 0) {
    Epoll(limit);
  } else if (strcmp(kind, "semaphore") == 0) {
    Semaphore(limit);
  } else if (strcmp(kind, "signal") == 0) {
    Signal(limit);
  } else if (strcmp(kind, "sleep") == 0) {
    Check(nanosleep(&time, NULL) == 0, "it sleeps");
  } else {
    exit(2);
  }
}

// So that the clock passes with instructions while the other thread waits, and
// slower than the host's: a call takes the host long, and few instructions.
static void* Call(void* arg) {
  for (;;) {
    sink += (unsigned)getppid();
  }
  return arg;
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[2]) : 3;
  const int64_t limit = 2000000;
  int64_t least = INT64_MAX;
  int64_t most = 0;
  pthread_t thread;
  sigset_t set;
  if (argc < 2) {
    return 2;
  }
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  for (int i = 0; i < rounds; ++i) {
    if (i == rounds / 2) {
      pthread_sigmask(SIG_BLOCK, &set, NULL);
      pthread_create(&thread, NULL, Call, NULL);
      pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    const int64_t before = Now(CLOCK_MONOTONIC);
    Wait(argv[1], limit);
    const int64_t late = Now(CLOCK_MONOTONIC) - before - limit;
    Check(late >= 0, "it is not early");
    least = late < least ? late : least;
    most = late > most ? late : most;
  }
  printf("%s: late by %lld to %lld us\n", argv[1], (long long)least / 1000,
         (long long)most / 1000);
  return 0;
}
