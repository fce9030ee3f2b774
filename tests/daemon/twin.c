// A process of which a core file and the process itself can be had at once: its
// memory has every kind of mapping, then it forks by a bare system call, the
// child dies of an illegal instruction in its working directory, and the parent
// stops. Between the fork and the stop neither writes to memory, nor does the
// kernel, if glibc has registered no rseq area (GLIBC_TUNABLES).
//
//   twin FILE       FILE has ten pages and a few bytes
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

enum {
  kPage = 4096,
  kThreads = 2,
  kStripes = 500,
};

static void Check(int good, const char* what) {
  if (!good) {
    perror(what);
    exit(2);
  }
}

static char* Map(size_t size, int flags, int fd) {
  char* const at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
  Check(at != MAP_FAILED, "mmap");
  return at;
}

static _Atomic int sleepers[kThreads];

static void* Sleep(void* own) {
  *(_Atomic int*)own = gettid();
  pause();
  return NULL;
}

static void MakeAnonymous(void) {
  char* const sparse =
      Map((size_t)16 << 20, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  for (size_t i = 0; i < 8; ++i) {
    sparse[(i << 21) + i * kPage] = (char)(i + 1);
  }
  char* const forbidden = Map(8 * kPage, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  memset(forbidden, 'f', 3 * kPage);
  Check(mprotect(forbidden, 8 * kPage, PROT_NONE) == 0, "mprotect");
  const volatile char* const looked_at =
      Map(64 * kPage, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  for (size_t i = 0; i < 64; i += 3) {
    (void)looked_at[i * kPage];  // the page of zeros
  }
  char* const huge = Map((size_t)8 << 20, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  (void)madvise(huge, (size_t)8 << 20, MADV_HUGEPAGE);
  memset(huge + (4 << 20), 'h', 100);
  char* const stripes =
      Map((size_t)kStripes * kPage, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  for (size_t i = 0; i < kStripes; i += 2) {
    stripes[i * kPage] = 's';
    Check(mprotect(stripes + i * kPage, kPage, PROT_READ) == 0, "mprotect");
  }
}

static void MakeShared(void) {
  char* const shared = Map(64 * kPage, MAP_SHARED | MAP_ANONYMOUS, -1);
  shared[5 * kPage] = shared[40 * kPage + 17] = 'm';
  const int id = shmget(IPC_PRIVATE, 32 * kPage, IPC_CREAT | 0600);
  Check(id >= 0, "shmget");
  char* const segment = shmat(id, NULL, 0);
  Check(shmctl(id, IPC_RMID, NULL) == 0, "shmctl");
  segment[9 * kPage] = 'g';
  // Written by another mapping of it: not in the page table of this one.
  char* const again = mremap(segment, 0, 32 * kPage, MREMAP_MAYMOVE);
  Check(again != MAP_FAILED, "mremap");
}

static void MakeFiles(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  Check(fd >= 0, path);
  char* const dirty = Map(14 * kPage, MAP_PRIVATE, fd);  // and beyond its end
  dirty[3 * kPage + 1] = 'd';
  (void)Map(14 * kPage, MAP_PRIVATE, fd);
  char* const shared = Map(10 * kPage, MAP_SHARED, fd);
  shared[7 * kPage] = 'w';
}

// Whether the thread waits in pause (proc(5), /proc/PID/stat: state S), as it
// does nowhere else once it has told its number.
static int IsAsleep(int thread) {
  char path[64];
  char text[256] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  Check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, path);
  close(fd);
  return strstr(text, ") S ") != NULL;
}

// On their way to sleep they write to their stacks.
static void AwaitSleepers(void) {
  for (int i = 0; i < kThreads; ++i) {
    while (sleepers[i] == 0 || !IsAsleep(sleepers[i])) {
      usleep(1000);
    }
  }
}

// Nothing of this touches memory.
static void Fork(void) {
  __asm__ volatile(
      "mov $57, %%eax\n"  // fork
      "syscall\n"
      "test %%rax, %%rax\n"
      "jz 2f\n"
      "mov $61, %%eax\n"  // wait4(-1, NULL, 0, NULL)
      "mov $-1, %%rdi\n"
      "xor %%esi, %%esi\n"
      "xor %%edx, %%edx\n"
      "xor %%r10d, %%r10d\n"
      "syscall\n"
      "mov $39, %%eax\n"  // kill(getpid(), SIGSTOP)
      "syscall\n"
      "mov %%eax, %%edi\n"
      "mov $19, %%esi\n"
      "mov $62, %%eax\n"
      "syscall\n"
      "1: mov $34, %%eax\n"  // pause
      "syscall\n"
      "jmp 1b\n"
      "2: ud2\n" ::
          : "rax", "rcx", "rdx", "rsi", "rdi", "r10", "r11", "memory");
}

int main(int argc, char** argv) {
  Check(argc == 2, "usage: twin FILE");
  const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  Check(setrlimit(RLIMIT_CORE, &all) == 0, "setrlimit");
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    Check(pthread_create(&thread, NULL, Sleep, &sleepers[i]) == 0,
          "pthread_create");
  }
  MakeAnonymous();
  MakeShared();
  MakeFiles(argv[1]);
  AwaitSleepers();
  Fork();
  return 2;
}
