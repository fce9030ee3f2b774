// Threads, and what a process can do with others meanwhile: a program that is
// spawned, a child that only execs, one that fails to, and a worker that goes
// on in this program with threads of its own. What they answer is printed, and
// the exit status is 0, if all of it is as expected.
//
// With arguments: the process becomes that program first.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { kThreads = 3, kRounds = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;
// Any thread may be the one that SIGCHLD interrupts, two at once.
static atomic_int children_seen;

static void* Count(void* unused) {
  (void)unused;
  volatile unsigned work = 0;
  for (int i = 0; i < kRounds; ++i) {
    for (int k = 0; k < 100; ++k) {
      work += (unsigned)k;
    }
    pthread_mutex_lock(&lock);
    ++count;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void StartThreads(pthread_t* threads) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Count, NULL);
  }
}

static void JoinThreads(const pthread_t* threads) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
}

static void OnChild(int signal) {
  (void)signal;
  atomic_fetch_add(&children_seen, 1);
}

// The exit status of `child`, which must end by itself.
static int Await(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int Spawn(void) {
  // The recorder's own settings are not for the child.
  char* arguments[] = {
      "sh", "-c", "exit $(env | grep -c '^LD_PRELOAD=\\|^CLEW_RECORDING=')",
      NULL};
  pid_t child = 0;
  return posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0
             ? Await(child)
             : -1;
}

static int Exec(const char* program) {
  const pid_t child = fork();
  if (child == 0) {
    execlp(program, program, (char*)NULL);
    _exit(42);
  }
  return Await(child);
}

// What the threads of a worker process counted.
static long Work(void) {
  int ends[2];
  if (pipe(ends) != 0) {
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_init(&lock, NULL);
    count = 0;
    pthread_t threads[kThreads];
    StartThreads(threads);
    JoinThreads(threads);
    exit(write(ends[1], &count, sizeof(count)) == sizeof(count) ? 5 : 6);
  }
  long counted = 0;
  const ssize_t got = read(ends[0], &counted, sizeof(counted));
  return Await(child) == 5 && got == sizeof(counted) ? counted : -1;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    execvp(argv[1], argv + 1);
    return 1;
  }
  signal(SIGCHLD, OnChild);
  pthread_t threads[kThreads];
  StartThreads(threads);
  const int spawned = Spawn();
  const int done = Exec("true");
  const int failed = Exec("clew-no-such-program");
  const long worked = Work();
  JoinThreads(threads);
  printf("spawned %d, exec %d, no exec %d, worker %ld, count %ld\n", spawned,
         done, failed, worked, count);
  const long wanted = (long)kThreads * kRounds;
  const int right = spawned == 0 && done == 0 && failed == 42 &&
                    worked == wanted && count == wanted && children_seen > 0;
  return right ? 0 : 1;
}
