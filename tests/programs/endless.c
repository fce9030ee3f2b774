// Runs until its standard input says otherwise, a line at a time: "p" is
// answered by "pong", "x" makes it fail, "f" lets a child process answer, "e"
// replaces it by itself, "w" lets it map nothing that is writable and
// executable, "s" has the kernel end it for calls that it does not make, the
// end of input ends it. Whatever moment one attaches to it at, some thread is
// in a call that waits, some is in the middle of something: threads lock, wait
// with and without a time limit, read the time, ask for their core, sleep,
// allocate, copy, handle signals, are made and joined. With an argument there
// are no signals, and nobody asks for a core; "nobody" makes it that user's
// besides.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel_code.h"

enum { kWorkers = 2, kSlots = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long slots[kSlots];
static unsigned long done;
static volatile unsigned long unguarded;
static volatile sig_atomic_t alarms;
static int is_plain;  // has an argument
static int to_reader[2];
static unsigned long kernel_code;

static void on_alarm(int signal) {
  (void)signal;
  ++alarms;
}

static void pause_us(long us) {
  struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static unsigned long text_of(unsigned long number) {
  char* const text = malloc(64 + number % 400);
  snprintf(text, 64, "%lu at %d", number, is_plain ? -1 : sched_getcpu());
  char* const copy = strdup(text);
  const unsigned long length = strlen(copy) + (unsigned long)copy[0];
  free(text);
  free(copy);
  return length;
}

static void* work(void* argument) {
  const unsigned long me = (unsigned long)argument;
  for (unsigned long i = 0;; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const unsigned long length = text_of(i + (unsigned long)now.tv_nsec);
    pthread_mutex_lock(&lock);
    slots[(i + me) % kSlots] += length;
    ++done;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    unguarded = unguarded + 1;
    if (i % 16 == me) {
      const char byte = (char)i;
      if (write(to_reader[1], &byte, 1) != 1) {
        break;
      }
      pause_us(200);
    }
  }
  return NULL;
}

static void* wait_for_changes(void* argument) {
  (void)argument;
  pthread_mutex_lock(&lock);
  for (unsigned long seen = 0;; seen = done) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    while (done < seen + 50 &&
           pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT) {
    }
  }
  return NULL;
}

static void* read_bytes(void* argument) {
  (void)argument;
  const int queue = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(queue, EPOLL_CTL_ADD, to_reader[0], &event);
  for (;;) {
    if (epoll_wait(queue, &event, 1, -1) != 1) {
      abort();  // nobody interrupts it
    }
    char bytes[8];
    if (read(to_reader[0], bytes, sizeof(bytes)) <= 0) {
      abort();
    }
    slots[(unsigned char)bytes[0] % kSlots] += 1;
  }
  return NULL;
}

static void* add_one(void* argument) {
  ++*(unsigned long*)argument;
  return NULL;
}

static void* make_threads(void* argument) {
  (void)argument;
  for (unsigned long made = 0;;) {
    const unsigned long before = made;
    pthread_t thread;
    if (pthread_create(&thread, NULL, add_one, &made) == 0) {
      pthread_join(thread, NULL);
      assert(made == before + 1);
    }
    pause_us(3000);
  }
  return NULL;
}

// How many mappings are writable and executable.
static int count_writable_code(void) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int count = 0;
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    count += strstr(line, " rwx") != NULL;
  }
  if (maps != NULL) {
    fclose(maps);
  }
  return count;
}

// A child's surroundings are those of a process that nobody records.
static void answer_from_child(void) {
  const pid_t child = fork();
  if (child != 0) {
    waitpid(child, NULL, 0);
    return;
  }
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  const struct rseq* const rseq =
      (const struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
  char line[80];
  const int size = snprintf(
      line, sizeof(line), "cpus %d, rseq %d, code %d, writable code %d\n",
      CPU_COUNT(&cpus), __rseq_size != 0 && (int)rseq->cpu_id >= 0,
      sum_of_kernel_code() == kernel_code, count_writable_code());
  _exit(write(STDOUT_FILENO, line, (size_t)size) == size ? 0 : 1);
}

static void begin_anew(char** arguments) {
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  execv("/proc/self/exe", arguments);
  exit(2);
}

// Of all threads.
static int forbid_calls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getitimer, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]),
                                     filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// Returns whether it was done.
static int do_as_told(char line) {
  const int set_mdwe = 65;  // PR_SET_MDWE, Linux 6.3
  const int refuse_exec_gain = 1;
  return line == 'w'   ? prctl(set_mdwe, refuse_exec_gain, 0, 0, 0) == 0
         : line == 's' ? forbid_calls()
                       : 1;
}

static void begin(void* (*routine)(void*), unsigned long argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, (void*)argument) != 0) {
    exit(2);
  }
}

int main(int count, char** arguments) {
  is_plain = count > 1;
  const uid_t nobody = 65534;
  if (is_plain && strcmp(arguments[1], "nobody") == 0 &&
      setresuid(nobody, nobody, nobody) != 0) {
    return 2;
  }
  kernel_code = sum_of_kernel_code();
  sigset_t alarm_set;
  sigemptyset(&alarm_set);
  sigaddset(&alarm_set, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_set, NULL);  // of main alone
  if (pipe(to_reader) != 0) {
    return 2;
  }
  begin(read_bytes, 0);
  begin(wait_for_changes, 0);
  begin(make_threads, 0);
  for (unsigned long i = 0; i < kWorkers; ++i) {
    begin(work, i);
  }
  pthread_sigmask(SIG_UNBLOCK, &alarm_set, NULL);
  const struct sigaction action = {.sa_handler = on_alarm,
                                   .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  if (!is_plain) {
    const struct itimerval every = {{0, 7000}, {0, 7000}};
    setitimer(ITIMER_REAL, &every, NULL);
  }
  for (;;) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, 20) <= 0) {
      continue;  // SIGALRM, or nothing was said
    }
    char line[2];
    const ssize_t size = read(STDIN_FILENO, line, sizeof(line));
    if (size <= 0) {
      return 0;
    }
    assert(line[0] != 'x');
    if (line[0] == 'f') {
      answer_from_child();
      continue;
    }
    if (line[0] == 'e') {
      begin_anew(arguments);
    }
    const char* const answer = do_as_told(line[0]) ? "pong\n" : "no\n";
    const size_t size_of_answer = strlen(answer);
    if (write(STDOUT_FILENO, answer, size_of_answer) !=
        (ssize_t)size_of_answer) {
      return 2;
    }
  }
}
