// habits flood THREADS CALLS   threads that call getpid(1), getpid(2), ...; all
//                              are there from the first call to the last
// habits signals               calls that signals interrupt
// habits frames FILE           handlers that write down the frame they find
// habits child                 a child process that calls getpid(77)
// habits exec                  getpid(1), then executes itself as "marks"
// habits marks                 getpid(2)
// habits sleep                 a thread in read, one that loops; ends by kill
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { kThreadsMax = 16 };

static void Mark(long number) {
  // The kernel ignores the argument; the recording has it.
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_getpid), "D"(number)
                   : "rcx", "r11", "memory");
}

static long calls;
static pthread_barrier_t all_began;
static pthread_barrier_t all_ended;

static void* FloodThread(void* unused) {
  pthread_barrier_wait(&all_began);
  for (long i = 1; i <= calls; ++i) {
    Mark(i);
  }
  pthread_barrier_wait(&all_ended);
  return unused;
}

static int Flood(int threads) {
  pthread_t ids[kThreadsMax];
  pthread_barrier_init(&all_began, NULL, (unsigned)threads);
  pthread_barrier_init(&all_ended, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    pthread_create(&ids[i], NULL, FloodThread, NULL);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  return 0;
}

static volatile sig_atomic_t handled;

static void OnSignal(int number) {
  (void)number;
  ++handled;
}

static int ends[2];
static volatile int target;
static volatile int stage;  // the mark behind which it waits, or is about to

static void Reach(int number) {
  stage = number;
  Mark(number);
}

static void* Interrupted(void* unused) {
  char byte = 0;
  struct timespec span = {.tv_sec = 100000};
  target = gettid();
  Reach(1);
  if (read(ends[0], &byte, 1) != -1 || errno != EINTR) {  // SIGUSR1
    _exit(4);
  }
  Reach(2);
  if (read(ends[0], &byte, 1) != 1) {  // SIGUSR2, restarted, then a byte
    _exit(5);
  }
  Reach(3);
  if (nanosleep(&span, &span) != -1 || errno != EINTR) {  // SIGUSR1
    _exit(6);
  }
  Reach(4);
  if (read(ends[0], &byte, 1) != 1) {
    _exit(7);
  }
  Reach(5);
  return unused;
}

static void Nap(void) {
  const struct timespec span = {.tv_nsec = 1000000};
  nanosleep(&span, NULL);
}

// The kernel's letter for the state of the thread, behind its name (proc(5),
// /proc/pid/stat).
static char StateOfTarget(void) {
  char text[512];
  snprintf(text, sizeof(text), "/proc/self/task/%d/stat", target);
  FILE* file = fopen(text, "r");
  if (file == NULL) {
    return 0;
  }
  text[fread(text, 1, sizeof(text) - 1, file)] = 0;
  fclose(file);
  const char* name_end = strrchr(text, ')');
  return name_end == NULL || name_end[1] == 0 ? 0 : name_end[2];
}

// It sleeps nowhere else behind that mark.
static void AwaitAsleepBehind(int mark) {
  while (stage != mark || StateOfTarget() != 'S') {
    Nap();
  }
}

static void AwaitHandled(int signals) {
  while (handled < signals) {
    Nap();
  }
}

static int frames_fd;

// Source: linux uapi/asm/sigcontext.h, struct _fpx_sw_bytes.
static void OnFrame(int number, siginfo_t* info, void* context) {
  const ucontext_t* uc = context;
  const char* frame = (const char*)uc - 8;  // the return address
  const char* fpu = (const char*)uc->uc_mcontext.fpregs;
  const uint32_t* software = (const uint32_t*)(fpu + 464);
  const uint64_t fpu_bytes = software[0] == 0x46505853 ? software[1] : 512;
  const uint64_t bytes = (uint64_t)(fpu - frame) + fpu_bytes;
  const uint64_t truth[] = {(uint64_t)frame, bytes, (uint64_t)number,
                            (uint64_t)info, (uint64_t)context};
  if (write(frames_fd, truth, sizeof(truth)) < 0 ||
      write(frames_fd, frame, bytes) < 0) {
    _exit(3);
  }
}

// On the stack that is there, and on another one.
static int Frames(const char* path) {
  frames_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  stack_t stack = {.ss_size = 1 << 16, .ss_sp = malloc(1 << 16)};
  struct sigaction action = {.sa_sigaction = OnFrame, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags |= SA_ONSTACK | SA_NODEFER;
  sigaction(SIGUSR2, &action, NULL);
  sigaction(SIGFPE, &action, NULL);
  if (frames_fd < 0 || stack.ss_sp == NULL || sigaltstack(&stack, NULL) != 0) {
    return 2;
  }
  raise(SIGUSR1);
  raise(SIGUSR2);
  raise(SIGFPE);
  return 0;
}

static int Signals(void) {
  struct sigaction action = {.sa_handler = OnSignal};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, NULL);
  pthread_t thread;
  if (pipe(ends) != 0 || pthread_create(&thread, NULL, Interrupted, NULL)) {
    return 2;
  }
  AwaitAsleepBehind(1);
  tgkill(getpid(), target, SIGUSR1);
  AwaitAsleepBehind(2);
  tgkill(getpid(), target, SIGUSR2);
  AwaitHandled(2);
  if (write(ends[1], "a", 1) != 1) {
    return 2;
  }
  AwaitAsleepBehind(3);
  tgkill(getpid(), target, SIGUSR1);
  AwaitAsleepBehind(4);
  if (write(ends[1], "b", 1) != 1) {
    return 2;
  }
  pthread_join(thread, NULL);
  return 0;
}

static int Child(void) {
  const pid_t child = fork();
  if (child == 0) {
    Mark(77);
    _exit(0);
  }
  return waitpid(child, NULL, 0) == child ? 0 : 2;
}

static void* Reader(void* unused) {
  char byte = 0;
  Mark(8);
  (void)!read(ends[0], &byte, 1);
  return unused;
}

static int Sleep(void) {
  pthread_t thread;
  if (pipe(ends) != 0 || pthread_create(&thread, NULL, Reader, NULL)) {
    return 2;
  }
  Mark(9);
  puts("ready");
  fflush(stdout);
  for (volatile long i = 0;; ++i) {
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "flood") == 0 && argc == 4) {
    calls = atol(argv[3]);
    return Flood(atoi(argv[2]));
  }
  if (strcmp(mode, "signals") == 0) {
    return Signals();
  }
  if (strcmp(mode, "frames") == 0 && argc == 3) {
    return Frames(argv[2]);
  }
  if (strcmp(mode, "child") == 0) {
    return Child();
  }
  if (strcmp(mode, "exec") == 0) {
    Mark(1);
    execl(argv[0], argv[0], "marks", (char*)NULL);
    return 2;
  }
  if (strcmp(mode, "marks") == 0) {
    Mark(2);
    return 0;
  }
  return strcmp(mode, "sleep") == 0 ? Sleep() : 2;
}
