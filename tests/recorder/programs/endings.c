// Ends in the way that its argument names.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

static volatile int sink;
static volatile int handled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void Crash(void) {
  volatile int* nowhere = (int*)0x123450;
  sink = 1;
  *nowhere = sink;  // FAULT
  sink = 2;
}

// Faults in the middle of one instruction that is a loop.
static void CrashInRep(void) {
  const size_t page = 4096;
  char* at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(at + page, page, PROT_NONE);
  char* to = at + page - 100;
  size_t count = 200;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
}

// So that nothing is where the kernel would tell a handler about its signal.
static __attribute__((noinline)) void ClearStack(void) {
  char below[16384];
  memset(below, 0, sizeof(below));
  __asm__ volatile("" : : "r"(below) : "memory");
}

static void OnSegv(int signal) {
  (void)signal;
  _exit(7);
}

static void* Sleep(void* unused) {
  pthread_mutex_lock(&lock);
  pthread_mutex_lock(&lock);
  return unused;
}

static void OnUser(int signal) {
  (void)signal;
  ++handled;
}

static void* Work(void* unused) {
  while (handled < 7) {
    ++sink;
  }
  return unused;
}

// Handlers return to a system call, and to the middle of a computation.
static void Interrupt(void) {
  pthread_t worker;
  signal(SIGUSR1, OnUser);
  for (int i = 0; i < 4; ++i) {
    raise(SIGUSR1);
  }
  pthread_create(&worker, NULL, Work, NULL);
  for (int i = 4; i < 7; ++i) {
    pthread_kill(worker, SIGUSR1);
    while (handled <= i) {
      sched_yield();
    }
  }
  pthread_join(worker, NULL);
}

static void* LoopForEver(void* unused) {
  for (;;) {
    ++sink;
  }
  return unused;
}

// After some time beside another thread, and after threads that came and went.
static void FailLate(void) {
  pthread_t other;
  pthread_create(&other, NULL, LoopForEver, NULL);
  for (int i = 0; i < 5000000; ++i) {
    sink += i & 1;
  }
  for (int i = 0; i < 10; ++i) {
    pthread_t brief;
    handled = 7;
    pthread_create(&brief, NULL, Work, NULL);
    pthread_join(brief, NULL);
  }
  abort();
}

// Waits for ever, for something outside: for a pipe's other end, or in a call
// that does not often wait.
static void WaitOutside(const char* fifo) {
  int ends[2];
  char byte = 0;
  if (fifo != NULL) {
    sink = open(fifo, O_RDONLY);
  } else if (pipe(ends) == 0) {
    sink = read(ends[0], &byte, 1) == 1;
  }
}

// Is stopped, with all its threads, until somebody else lets it go on. Then its
// thread waits and runs again, a few times.
static void Stop(const char* pid_file) {
  FILE* file = fopen(pid_file, "w");
  fprintf(file, "%d\n", getpid());
  fclose(file);
  kill(getpid(), SIGSTOP);
  for (int i = 0; i < 10; ++i) {
    usleep(1000);
  }
}

// Numbers that the kernel does not have, the last two in 32 bits of rax.
static int CallWhatIsNot(void) {
  static const unsigned long kNumbers[] = {~0UL, ~9UL, 999, 0xffffffff,
                                           0x100000000 + 999};
  for (int i = 0; i < 5; ++i) {
    long result = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(kNumbers[i])
                     : "rcx", "r11", "memory");
    if (result != -ENOSYS) {
      return 1;
    }
  }
  return 0;
}

static int MakeRareCalls(void) {
  struct timex clock = {.modes = 0};
  const int self = getpid();
  const int state = adjtimex(&clock);
  sink = (int)(clock.tick + clock.time.tv_sec);
  return state < 0 || clock_adjtime(CLOCK_REALTIME, &clock) != state ||
         syscall(SYS_pidfd_open, self, 0) < 0 ||
         syscall(SYS_kcmp, self, self, KCMP_FILE, 1, 1) != 0 ||
         acct("/nowhere/at/all") == 0;
}

// Goes on when the process's first thread has ended, which it cancels before if
// `first` is that thread.
static void* EndLast(void* first) {
  if (first != NULL && (pthread_cancel(*(pthread_t*)first) != 0 ||
                        pthread_join(*(pthread_t*)first, NULL) != 0)) {
    _exit(1);
  }
  for (int i = 0; i < 3; ++i) {
    usleep(1000);
  }
  if (open("/dev/null", O_RDONLY) >= 0) {
    puts("the last thread ends");
  }
  return NULL;
}

static void EndFirst(void) {
  pthread_t last;
  pthread_create(&last, NULL, EndLast, NULL);
  pthread_detach(last);
  pthread_exit(NULL);
}

static void BeCancelled(void) {
  static pthread_t first;
  pthread_t last;
  first = pthread_self();
  pthread_create(&last, NULL, EndLast, &first);
  pthread_detach(last);
  for (;;) {
    pause();
  }
}

// As daemons do at their start.
static int CloseAll(void) {
  for (int i = 3; i < sysconf(_SC_OPEN_MAX); ++i) {
    close(i);
  }
  return open("/dev/null", O_RDONLY);  // 3
}

// As closefrom(3) of C libraries that know the call.
static long CloseRange(void) {
  return syscall(SYS_close_range, 3, ~0U, 0) + open("/dev/null", O_RDONLY);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  char path[4096];
  if (strcmp(how, "crash") == 0) {
    Crash();
  } else if (strcmp(how, "rep") == 0) {
    CrashInRep();
  } else if (strcmp(how, "divide") == 0) {
    sink = 5 / (argc - 2);
  } else if (strcmp(how, "abort") == 0) {
    abort();
  } else if (strcmp(how, "beyond") == 0) {
    FailLate();
  } else if (strcmp(how, "term") == 0) {
    raise(SIGTERM);
  } else if (strcmp(how, "handled") == 0) {
    signal(SIGSEGV, OnSegv);
    ClearStack();
    Crash();
  } else if (strcmp(how, "deadlock") == 0) {
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
  } else if (strcmp(how, "spin") == 0) {
    for (;;) {
      ++sink;
    }
  } else if (strcmp(how, "outside") == 0) {
    WaitOutside(argc > 2 ? argv[2] : NULL);
  } else if (strcmp(how, "stop") == 0) {
    Stop(argv[2]);
  } else if (strcmp(how, "rare") == 0) {
    __asm__ volatile("sldt %%eax" : : : "eax");
  } else if (strcmp(how, "large") == 0) {
    const size_t size = (size_t)64 << 20;
    sink = *(char*)memset(malloc(size), 1, size);
  } else if (strcmp(how, "reserve") == 0) {
    return mmap(NULL, (size_t)16 << 40, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0) == MAP_FAILED;
  } else if (strcmp(how, "newborn") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, Sleep, NULL);
    sched_yield();  // Sleep waits
    pthread_create(&thread, NULL, Sleep, NULL);
    _exit(0);
  } else if (strcmp(how, "returning") == 0) {
    Interrupt();
    return 0;
  } else if (strcmp(how, "close2") == 0) {
    close(2);
    close(1);
    return 4;
  } else if (strcmp(how, "remove") == 0) {
    rename(argv[2], strcat(strcpy(path, argv[2]), ".elsewhere"));
  } else if (strcmp(how, "drop") == 0) {
    return setuid(65534) == 0 ? 3 : 1;
  } else if (strcmp(how, "close_all") == 0) {
    return CloseAll();
  } else if (strcmp(how, "close_range") == 0) {
    return (int)CloseRange();
  } else if (strcmp(how, "no_such_call") == 0) {
    return CallWhatIsNot();
  } else if (strcmp(how, "rare_calls") == 0) {
    return MakeRareCalls();
  } else if (strcmp(how, "first_ends") == 0) {
    EndFirst();
  } else if (strcmp(how, "first_cancelled") == 0) {
    BeCancelled();
  } else if (strcmp(how, "exec") == 0) {
    execl(argv[2], argv[2], (char*)NULL);
  }
  return 3;
}
