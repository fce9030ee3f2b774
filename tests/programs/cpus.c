// Answers lines on its standard input, of the CPUs that it may run on: "p" by
// "pong", "c" by how many there are and whether it is on one of them, "t" and
// "f" likewise of a thread and of a process that it makes; "b" binds it to the
// last of them. The end of input ends it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(void) {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) {
    _exit(2);
  }
  dprintf(STDOUT_FILENO, "%d, on one of them %d\n", CPU_COUNT(&cpus),
          CPU_ISSET((size_t)sched_getcpu(), &cpus) != 0);
}

static void* tell_in_thread(void* unused) {
  tell();
  return unused;
}

static void bind_to_last(void) {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  size_t last = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    last = CPU_ISSET(cpu, &cpus) ? cpu : last;
  }
  CPU_ZERO(&cpus);
  CPU_SET(last, &cpus);
  const int bound = sched_setaffinity(0, sizeof(cpus), &cpus);
  CPU_ZERO(&cpus);
  const int refused = sched_setaffinity(0, sizeof(cpus), &cpus);
  dprintf(STDOUT_FILENO, "bound %d, to none %d\n", bound,
          refused == 0 ? 0 : errno == EINVAL);
}

int main(void) {
  char line[2];
  while (read(STDIN_FILENO, line, sizeof(line)) == sizeof(line)) {
    pthread_t thread;
    if (line[0] == 'p') {
      dprintf(STDOUT_FILENO, "pong\n");
    } else if (line[0] == 'c') {
      tell();
    } else if (line[0] == 'b') {
      bind_to_last();
    } else if (line[0] == 't') {
      if (pthread_create(&thread, NULL, tell_in_thread, NULL) != 0 ||
          pthread_join(thread, NULL) != 0) {
        return 2;
      }
    } else if (line[0] == 'f') {
      if (fork() == 0) {
        tell();
        return 0;
      }
      wait(NULL);
    }
  }
  return 0;
}
