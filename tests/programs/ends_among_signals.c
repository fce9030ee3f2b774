// Ends while a timer interrupts it again and again: "kill" by a signal, "exit"
// with the status 7, "exec" by replacing itself; then it is the timer that ends
// it, unless its signal is blocked.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;

// Each comes soon behind the one before, however slow that was.
static void set_alarm(void) {
  const struct itimerval soon = {{0, 0}, {0, 10 + alarms % 40}};
  setitimer(ITIMER_REAL, &soon, NULL);
}

static void on_alarm(int signal) {
  (void)signal;
  ++alarms;
  set_alarm();
}

static void* sleep_on(void* argument) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  while (sleep(1000) == 0) {
  }
  return argument;
}

static int wait_for_alarm(void) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  while (!sigismember(&blocked, SIGALRM)) {
    pause();
  }
  return 4;
}

int main(int count, char** arguments) {
  if (count < 2) {
    return 2;
  }
  if (strcmp(arguments[1], "replaced") == 0) {
    return wait_for_alarm();
  }
  pthread_t other;
  if (pthread_create(&other, NULL, sleep_on, NULL) != 0) {
    return 2;
  }
  signal(SIGALRM, on_alarm);
  set_alarm();
  while (alarms < 50) {
  }
  if (strcmp(arguments[1], "exit") == 0) {
    _exit(7);
  }
  if (strcmp(arguments[1], "exec") == 0) {
    execl(arguments[0], arguments[0], "replaced", (char*)NULL);
  }
  kill(getpid(), SIGUSR2);
  return 9;
}
