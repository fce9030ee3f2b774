// Answers lines on its standard input by "pong", until that ends. Its other
// threads sleep for hours, in each of the calls that the kernel goes on with by
// restart_syscall(2) when they were interrupted.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct timespec hours = {36000, 0};
static int word;

static void* wait_for_nothing(void* argument) {
  (void)argument;
  return (void*)(long)poll(NULL, 0, 36000000);
}

static void* sleep_by_its_clock(void* argument) {
  (void)argument;
  return (void*)(long)clock_nanosleep(CLOCK_MONOTONIC, 0, &hours, NULL);
}

static void* sleep_as_of_old(void* argument) {
  (void)argument;
  return (void*)syscall(SYS_nanosleep, &hours, NULL);
}

static void* wait_for_word(void* argument) {
  (void)argument;
  return (void*)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &hours, NULL, 0);
}

int main(void) {
  void* (*const sleepers[])(void*) = {wait_for_nothing, sleep_by_its_clock,
                                      sleep_as_of_old, wait_for_word};
  for (size_t i = 0; i < sizeof(sleepers) / sizeof(sleepers[0]); ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleepers[i], NULL) != 0) {
      return 2;
    }
  }
  char line[2];
  while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
    if (write(STDOUT_FILENO, "pong\n", 5) != 5) {
      return 2;
    }
  }
  return 0;
}
