// Threads that make processes at the same time, with the program's memory
// (posix_spawn, vfork): their stacks are where those of another thread's were.
// Ends by abort(3).
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kProcesses = 12 };

static char* const arguments[] = {"true", NULL};
static long ended;

static pid_t Spawn(long number) {
  pid_t process = -1;
  if (number % 2 == 0) {
    return posix_spawn(&process, "/bin/true", NULL, NULL, arguments, environ) ==
                   0
               ? process
               : -1;
  }
  process = vfork();
  if (process == 0) {
    execv("/bin/true", arguments);
    _exit(1);
  }
  return process;
}

static void* SpawnMany(void* argument) {
  for (long i = 0; i < kProcesses; ++i) {
    const pid_t process = Spawn(i);
    int status = 1;
    if (waitpid(process, &status, 0) == process && status == 0) {
      __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    }
  }
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, SpawnMany, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  if (ended != kThreads * kProcesses) {
    return 1;
  }
  abort();
}
