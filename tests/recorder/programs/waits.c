// Waits with a time limit. The argument says which; exits with 0 if the wait
// ended as it should, at a time that the program's own clocks agree with.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kSeconds = 1000 };

static const struct timespec kLong = {.tv_sec = kSeconds, .tv_nsec = 5};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int tickets;

static double Seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "waits: not so: %s\n", what);
    exit(1);
  }
}

static unsigned Compute(unsigned x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x = x * 22695477 + 1;
  }
  return x;
}

static struct timespec In(clockid_t clock, long ns) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += ns;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

static void Sleep(void) {
  const double before = Seconds(CLOCK_MONOTONIC);
  const double day = Seconds(CLOCK_REALTIME);
  const time_t seconds = time(NULL);
  struct timeval of_day;
  gettimeofday(&of_day, NULL);
  Check(labs(of_day.tv_sec - (long)day) <= 1, "the clocks of the day agree");
  Check(labs(seconds - (long)day) <= 1, "time(2) does, too");
  struct timespec wanted = kLong;
  Check(nanosleep(&wanted, NULL) == 0, "nanosleep returns 0");
  Check(wanted.tv_sec == kSeconds && wanted.tv_nsec == 5, "its limit is kept");
  const double slept = Seconds(CLOCK_MONOTONIC) - before;
  Check(slept >= kSeconds && slept < kSeconds + 1, "it slept as long");
  Check(time(NULL) - seconds >= kSeconds, "time(2) saw it");
}

static void Absolute(void) {
  struct timespec at = In(CLOCK_REALTIME, 500000000);
  Check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == 0, "0");
  const double over =
      Seconds(CLOCK_REALTIME) - (double)at.tv_sec - (double)at.tv_nsec / 1e9;
  Check(over >= 0 && over < 0.1, "it slept until then");
  at.tv_sec -= 10;
  Check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == 0, "past");
}

static void Limit(void) {
  struct timespec at = In(CLOCK_REALTIME, 300000000);
  const double before = Seconds(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  Check(pthread_cond_timedwait(&changed, &mutex, &at) == ETIMEDOUT, "timeout");
  const double waited = Seconds(CLOCK_REALTIME) - before;
  Check(waited >= 0.299 && waited < 0.4, "after its time");
}

static void* Signal(void* sum) {
  *(unsigned*)sum += Compute(1, 20000);
  pthread_mutex_lock(&mutex);
  ++tickets;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void WakeUp(void) {
  pthread_t other;
  unsigned sum = 0;
  pthread_create(&other, NULL, Signal, &sum);
  struct timespec at = In(CLOCK_REALTIME, 0);
  at.tv_sec += kSeconds;
  const double before = Seconds(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  while (tickets == 0) {
    Check(pthread_cond_timedwait(&changed, &mutex, &at) == 0, "woken");
  }
  pthread_mutex_unlock(&mutex);
  Check(Seconds(CLOCK_REALTIME) - before < 1, "long before its limit");
  pthread_join(other, NULL);
}

static void* End(void* sum) {
  *(unsigned*)sum += Compute(1, 20000);
  return sum;
}

static void Join(void) {
  pthread_t other;
  unsigned sum = 0;
  pthread_create(&other, NULL, End, &sum);
  struct timespec at = In(CLOCK_REALTIME, 0);
  at.tv_sec += kSeconds;
  const double before = Seconds(CLOCK_REALTIME);
  Check(pthread_timedjoin_np(other, NULL, &at) == 0, "joined");
  Check(Seconds(CLOCK_REALTIME) - before < 1, "long before its limit");
}

static volatile sig_atomic_t handled;

static void Handle(int signal) { handled = signal; }

static volatile unsigned sink;

static void* Kill(void* main_thread) {
  sink = Compute(1, 50000);  // until the other sleeps
  pthread_kill(*(pthread_t*)main_thread, SIGUSR1);
  return NULL;
}

static void Interrupt(void) {
  struct sigaction action = {.sa_handler = Handle};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t self = pthread_self();
  pthread_t other;
  pthread_create(&other, NULL, Kill, &self);
  const double before = Seconds(CLOCK_MONOTONIC);
  Check(nanosleep(&kLong, NULL) == -1 && errno == EINTR, "interrupted");
  Check(handled == SIGUSR1, "handled");
  Check(Seconds(CLOCK_MONOTONIC) - before < 1, "long before its limit");
  pthread_join(other, NULL);
}

// A time limit that the program itself could not write.
// By another process: the whole wait is not over in a moment.
static void Stranger(void) {
  const struct sigaction action = {.sa_handler = Handle};
  sigaction(SIGUSR1, &action, NULL);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    usleep(100000);
    kill(parent, SIGUSR1);
    _exit(0);
  }
  struct timespec rest = {0};
  Check(nanosleep(&kLong, &rest) == -1 && errno == EINTR, "it is interrupted");
  Check(handled == SIGUSR1, "the handler has run");
  Check(rest.tv_sec > kSeconds / 2, "much of it is left");
  Check(waitpid(child, NULL, 0) == child, "the child is waited for");
}

static void* OpenToWrite(void* path) {
  return (void*)(size_t)open(path, O_WRONLY);
}

// A call that mostly does not wait does so until another thread's call.
static void Fifo(void) {
  char folder[] = "/tmp/clew-waits-XXXXXX";
  char path[64];
  Check(mkdtemp(folder) != NULL, "there is a folder");
  snprintf(path, sizeof path, "%s/fifo", folder);
  Check(mkfifo(path, 0600) == 0, "there is a FIFO");
  pthread_t other;
  pthread_create(&other, NULL, OpenToWrite, path);
  const int in = open(path, O_RDONLY);
  void* out;
  pthread_join(other, &out);
  Check(in >= 0 && (int)(size_t)out >= 0, "both ends are open");
  unlink(path);
  rmdir(folder);
}

static void Constant(void) {
  const double before = Seconds(CLOCK_MONOTONIC);
  Check(nanosleep(&kLong, NULL) == 0, "nanosleep returns 0");
  Check(kLong.tv_sec == kSeconds, "its limit is kept");
  Check(Seconds(CLOCK_MONOTONIC) - before >= kSeconds, "it slept as long");
}

static int pipe_ends[2];

static void* Read(void* unused) {
  char byte = 0;
  Check(read(pipe_ends[0], &byte, 1) == 1, "a byte");
  return unused;
}

// While a thread waits for something outside, time passes as on the host.
static void Outside(void) {
  Check(pipe(pipe_ends) == 0, "pipe");
  pthread_t other;
  pthread_create(&other, NULL, Read, NULL);
  const double before = Seconds(CLOCK_MONOTONIC);
  const struct timespec some = {.tv_nsec = 200000000};
  Check(nanosleep(&some, NULL) == 0, "nanosleep returns 0");
  const double slept = Seconds(CLOCK_MONOTONIC) - before;
  Check(slept >= 0.2 && slept < 60, "it slept");
  Check(write(pipe_ends[1], "x", 1) == 1, "written");
  pthread_join(other, NULL);
}

// Threads that wait with limits that end before, while and after others signal.
static void* Wait(void* number) {
  unsigned x = (unsigned)(size_t)number;
  for (int i = 0; i < 60; ++i) {
    x = Compute(x, 200 + (int)(x >> 22));
    struct timespec at = In(CLOCK_REALTIME, 1000 + (long)(x >> 13));
    pthread_mutex_lock(&mutex);
    if (x >> 31 != 0) {
      ++tickets;
      pthread_cond_signal(&changed);
    } else if (pthread_cond_timedwait(&changed, &mutex, &at) != 0) {
      x = Compute(x, 50);
    }
    pthread_mutex_unlock(&mutex);
    const struct timespec some = {.tv_nsec = (long)(x >> 15)};
    nanosleep(&some, NULL);
  }
  return (void*)(size_t)x;
}

static void Race(void) {
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i) {
    pthread_create(&threads[i], NULL, Wait, (void*)(i * 7919 + 1));
  }
  for (size_t i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {
      {"sleep", Sleep},       {"absolute", Absolute}, {"limit", Limit},
      {"signal", Interrupt},  {"wake", WakeUp},       {"join", Join},
      {"constant", Constant}, {"outside", Outside},   {"race", Race},
      {"stranger", Stranger}, {"fifo", Fifo}};
  for (size_t i = 0; argc > 1 && i < sizeof kCases / sizeof *kCases; ++i) {
    if (strcmp(argv[1], kCases[i].name) == 0) {
      kCases[i].run();
      return 0;
    }
  }
  return 2;
}
