// Does to its process group or its terminal what its argument says.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts;

static void OnInterrupt(int signal) {
  (void)signal;
  ++interrupts;
}

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "groups: not so: %s\n", what);
    exit(1);
  }
}

// A child that is asleep until somebody ends it, and keeps no output open.
static pid_t StartSleeper(void) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    for (;;) {
      pause();
    }
  }
  return child;
}

// Its line, and an interrupt, come from the terminal.
static void UseTerminal(void) {
  char line[64] = "";
  const struct sigaction action = {.sa_handler = OnInterrupt};
  sigaction(SIGINT, &action, NULL);
  Check(tcgetpgrp(STDIN_FILENO) == getpgrp(), "it has the terminal");
  puts("ready");
  fflush(stdout);
  Check(fgets(line, sizeof(line), stdin) != NULL, "a line is read");
  Check(strcmp(line, "hello\n") == 0, "the line that was sent");
  puts("read");
  fflush(stdout);
  while (interrupts == 0) {
    usleep(1000);
  }
  puts("interrupted");
}

// A line comes from a terminal that it may not have yet.
static void AskTerminal(void) {
  char line[64] = "";
  Check(tcgetpgrp(STDIN_FILENO) != getpgrp(), "it has no terminal");
  Check(fgets(line, sizeof(line), stdin) != NULL, "a line is read");
  Check(strcmp(line, "hello\n") == 0, "the line that was sent");
  puts("read");
}

static void AwaitFile(const char* path) {
  fputs("waits\n", stderr);
  while (access(path, F_OK) != 0) {
    usleep(1000);
  }
}

static void Hang(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
}

static void PrintSleeper(void) {
  printf("sleeper %d\n", StartSleeper());
  fflush(stdout);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "abort") == 0) {
    kill(0, SIGABRT);
  } else if (strcmp(how, "trap") == 0) {
    kill(0, SIGTRAP);
  } else if (strcmp(how, "term") == 0) {
    PrintSleeper();
    kill(0, SIGTERM);
  } else if (strcmp(how, "kill") == 0) {
    kill(-getpgrp(), SIGKILL);
  } else if (strcmp(how, "session") == 0) {
    Check(setsid() == getpid(), "it led no group");
  } else if (strcmp(how, "terminal") == 0) {
    UseTerminal();
  } else if (strcmp(how, "ask") == 0) {
    AskTerminal();
  } else if (strcmp(how, "await") == 0 && argc > 2) {
    AwaitFile(argv[2]);
  } else if (strcmp(how, "hang") == 0) {
    PrintSleeper();
    Hang();
  } else if (strcmp(how, "leave") == 0) {
    PrintSleeper();
  } else {
    return 2;
  }
  return 0;
}
