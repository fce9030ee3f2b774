// A child that a thread forks has that thread alone, which goes on: fork(2).
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int Threads(void) {
  DIR* folder = opendir("/proc/self/task");
  CHECK(folder != NULL);
  int count = -2;  // "." and ".."
  while (readdir(folder) != NULL) {
    ++count;
  }
  closedir(folder);
  return count;
}

static void* Fork(void* unused) {
  const pid_t child = fork();
  if (child == 0) {
    CHECK(Threads() == 1 && getpid() == gettid());
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(Threads() == 1);
  CHECK(pthread_create(&thread, NULL, Fork, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
