// A child as a hostile one would be: does what its first argument says. As
// `backtrace` or `solve` it does what the bundle says, whose perf.data has
// lines
// "<command> <mode>" and "group <hexadecimal digit>".
// Plain C, so that a sanitised build of the tests does not sanitise it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void UseMemory(void) {
  for (;;) {
    char* block = malloc(1 << 20);
    if (block == NULL) {
      perror("malloc");
      exit(1);
    }
    memset(block, 1, 1 << 20);
  }
}

static void Flood(int fd) {
  char line[4096];
  memset(line, 'x', sizeof(line));
  line[sizeof(line) - 1] = '\n';
  while (write(fd, line, sizeof(line)) > 0) {
  }
}

static void WriteFileForEver(void) {
  const int fd = open("big", O_CREAT | O_WRONLY, 0600);
  Flood(fd);
}

// Leaves processes behind that try to get away; each prints its number.
static void LeaveBehind(int depth) {
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      signal(SIGTERM, SIG_IGN);
      signal(SIGHUP, SIG_IGN);
      (void)setsid();
      (void)setpgid(0, 0);
      dprintf(1, "%d\n", getpid());
      if (depth > 0) {
        LeaveBehind(depth - 1);
      }
      for (;;) {
        pause();
      }
    }
  }
  // Only those that have told their number are looked for.
  usleep(300 * 1000);
}

static void Tell(const char* what, long result) {
  printf("%s: %s\n", what, result >= 0 ? "done" : strerror(errno));
}

static void* Nothing(void* argument) { return argument; }

static void TryAll(char** paths) {
  Tell("socket", socket(AF_INET, SOCK_STREAM, 0));
  Tell("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
  Tell("setsid", setsid());
  Tell("unshare", unshare(CLONE_NEWUSER));
  Tell("clone newuser",
       syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  Tell("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
  Tell("kill parent", kill(getppid(), 0));
  struct rlimit limit = {1, 1};
  Tell("limit parent", prlimit(getppid(), RLIMIT_CORE, &limit, NULL));
  Tell("limit self", prlimit(0, RLIMIT_CORE, NULL, &limit));
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  Tell("fork", child);
  pthread_t thread;
  errno = pthread_create(&thread, NULL, Nothing, NULL);
  Tell("thread", errno == 0 ? 0 : -1);
  Tell("write below", open("mine", O_CREAT | O_WRONLY, 0600));
  Tell("rename below", rename("mine", "mine too"));
  for (; *paths != NULL; ++paths) {
    Tell("read", open(*paths, O_RDONLY));
    Tell("write", open(*paths, O_WRONLY));
  }
}

static void TellDescriptors(void) {
  for (int fd = 0; fd < 256; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) {
      printf("%d ", fd);
    }
  }
  char byte;
  printf("stdin %zd", read(0, &byte, 1));
}

static void TellBacktraces(char group) {
  char signature[65] = {0};
  memset(signature, group, 64);
  printf(
      "{\"signature\": \"%s\", \"title\": \"SIGABRT in group %c\", "
      "\"threads\": []}\n",
      signature, group);
}

static void LeaveSchedule(const char* bundle) {
  if (chdir(bundle) != 0) {
    exit(9);
  }
  const int fd = open("schedule.pb", O_CREAT | O_TRUNC | O_WRONLY, 0600);
  dprintf(fd, "a schedule");
  close(fd);
}

static void TellWitness(void) {
  printf(
      "{\"verdict\": \"witness\", \"grade\": \"memory-exact\", "
      "\"seconds\": 1.5}\n");
}

static int Act(const char* mode, char** arguments);

// As clew would: `bundle` says what.
static int ActAsClew(const char* command, const char* bundle) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/perf.data", bundle);
  FILE* file = fopen(path, "r");
  char line[256];
  char mode[256] = "good";
  char group = 'a';
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "group ", 6) == 0) {
      group = line[6];
    } else if (strncmp(line, command, strlen(command)) == 0) {
      strcpy(mode, line + strlen(command) + 1);
    }
  }
  if (strcmp(mode, "good") == 0) {
    TellBacktraces(group);
  } else if (strcmp(mode, "witness") == 0) {
    LeaveSchedule(bundle);
    TellWitness();
  } else if (strcmp(mode, "no schedule") == 0) {
    TellWitness();
  } else if (strcmp(mode, "contradiction") == 0) {
    printf("{\"verdict\": \"unsat\", \"conflict\": [\"one\", \"two\"]}\n");
    return 1;
  } else if (strcmp(mode, "unknown") == 0) {
    printf("{\"verdict\": \"unknown\", \"reason\": \"time limit\"}\n");
    return 5;
  } else if (strcmp(mode, "lie") == 0) {
    TellWitness();
    return 5;
  } else if (strcmp(mode, "garbage") == 0) {
    printf("[[[[");
  } else if (strcmp(mode, "no signature") == 0) {
    printf("{\"signature\": 7, \"title\": []}");
  } else if (strcmp(mode, "fail") == 0) {
    fprintf(stderr, "clew: perf.data: offset 0x8: \x1b[31mbroken\n");
    return 4;
  } else {
    return Act(mode, NULL);
  }
  return 0;
}

static int Act(const char* mode, char** arguments) {
  if (strcmp(mode, "memory") == 0) {
    UseMemory();
  } else if (strcmp(mode, "cpu") == 0) {
    for (;;) {
    }
  } else if (strcmp(mode, "hang") == 0) {
    // Told where somebody else can read it, before it hangs.
    const int fd = open("pid", O_CREAT | O_WRONLY, 0600);
    dprintf(fd, "%d\n", getpid());
    for (;;) {
      pause();
    }
  } else if (strcmp(mode, "flood") == 0) {
    Flood(1);
  } else if (strcmp(mode, "file") == 0) {
    WriteFileForEver();
  } else if (strcmp(mode, "complain") == 0) {
    for (int i = 0; i < 10000; ++i) {
      fprintf(stderr, "complaint %d\n", i);
    }
    return 3;
  } else if (strcmp(mode, "leave") == 0) {
    LeaveBehind(1);
  } else if (strcmp(mode, "leave and hang") == 0) {
    LeaveBehind(1);
    for (;;) {
      pause();
    }
  } else if (strcmp(mode, "try") == 0) {
    TryAll(arguments);
  } else if (strcmp(mode, "crash") == 0) {
    raise(SIGSEGV);
  } else if (strcmp(mode, "descriptors") == 0) {
    TellDescriptors();
  }
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "backtrace") == 0 || strcmp(mode, "solve") == 0) {
    return ActAsClew(mode, argv[argc - 1]);
  }
  return Act(mode, argv + 2);
}
