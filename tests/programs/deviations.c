// Does what its argument names; exits with 0 where that went as the kernel's
// manual says, with 3 where it did not.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kPage = 4096, kDiffers = 3 };

static char* Pages(int kind) {
  char* at = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS,
                  -1, 0);
  at[0] = 5;
  return at;
}

// How a child that looks at `at` ends.
static int StatusOfReader(const volatile char* at) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(*at);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

static int MadviseRemove(void) {
  char* at = Pages(MAP_SHARED);
  return madvise(at, kPage, MADV_REMOVE) == 0 && at[0] == 0;
}

static int MadviseDontFork(void) {
  char* at = Pages(MAP_PRIVATE);
  return madvise(at, kPage, MADV_DONTFORK) == 0 &&
         WIFSIGNALED(StatusOfReader(at));
}

static int MadviseWipeOnFork(void) {
  char* at = Pages(MAP_PRIVATE);
  return madvise(at, kPage, MADV_WIPEONFORK) == 0 && StatusOfReader(at) == 0;
}

static int MapNoReplace(void) {
  char* at = Pages(MAP_PRIVATE);
  return mmap(at, kPage, PROT_READ,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
              0) == MAP_FAILED;
}

static int LimitMemory(int resource, int by_prlimit) {
  const struct rlimit limit = {1 << 20, RLIM_INFINITY};
  const int set = by_prlimit ? prlimit(0, resource, &limit, NULL)
                             : (int)syscall(SYS_setrlimit, resource, &limit);
  return set == 0 && mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int LimitSpace(void) { return LimitMemory(RLIMIT_AS, 0); }
static int LimitData(void) { return LimitMemory(RLIMIT_DATA, 0); }
static int PrlimitSpace(void) { return LimitMemory(RLIMIT_AS, 1); }
static int PrlimitData(void) { return LimitMemory(RLIMIT_DATA, 1); }

// A number that the kernel may refuse for another reason.
static int IsThere(long result) {
  return result >= 0 || (errno != ENOSYS && errno != EINVAL);
}

// Of a process of its own, which strict mode ends.
static int SeccompStrict(void) {
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0;
}
// The filter is not read: EFAULT.
static int SeccompFilter(void) {
  return IsThere(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
}
static int PrctlSetSeccomp(void) {
  return IsThere(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
}
static int PrctlGetSeccomp(void) {
  return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
}
static int PrctlGetTsc(void) {
  int mode = 0;
  return prctl(PR_GET_TSC, &mode) == 0;
}
static int PrctlSetTsc(void) { return prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0; }
static int PrctlSetSubreaper(void) {
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}
static int PrctlGetSubreaper(void) {
  int is = 0;
  return prctl(PR_GET_CHILD_SUBREAPER, &is) == 0;
}
static int PrctlTidAddress(void) {
  void* address = NULL;
  return prctl(PR_GET_TID_ADDRESS, &address) == 0 && address != NULL;
}
static int PrctlUserDispatch(void) { return prctl(59, 0, 0, 0, 0) == 0; }

static int Keyctl(void) { return IsThere(syscall(SYS_keyctl, 0, -3, 0)); }
static int AddKey(void) {
  return IsThere(syscall(SYS_add_key, NULL, NULL, NULL, 0, 0));
}
static int RequestKey(void) {
  return IsThere(syscall(SYS_request_key, NULL, NULL, NULL, 0));
}
static int PerfEventOpen(void) {
  return IsThere(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
}
static int Userfaultfd(void) { return IsThere(syscall(SYS_userfaultfd, 0)); }
static int ProcessVm(long number) {
  char from = 3;
  char to = 0;
  struct {
    void* base;
    size_t size;
  } local = {&to, 1}, remote = {&from, 1};
  return syscall(number, getpid(), &local, 1, &remote, 1, 0) == 1;
}
static int ProcessVmReadv(void) { return ProcessVm(SYS_process_vm_readv); }
static int ProcessVmWritev(void) { return ProcessVm(SYS_process_vm_writev); }
static int GetMempolicy(void) {
  return IsThere(syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0));
}
static int FanotifyInit(void) {
  return IsThere(syscall(SYS_fanotify_init, 0, 0));
}
static int Mlock2(void) {
  return IsThere(syscall(SYS_mlock2, Pages(MAP_PRIVATE), kPage, 1));
}

static int MakesChild(unsigned long flags) {
  int descriptor = -1;
  const pid_t child = (pid_t)syscall(SYS_clone, flags, 0, &descriptor, 0, 0);
  if (child == 0) {
    _exit(0);
  }
  return child > 0 && waitpid(child, NULL, __WALL) == child &&
         ((flags & CLONE_PIDFD) == 0 || descriptor >= 0);
}
static int CloneFiles(void) { return MakesChild(CLONE_FILES | SIGCHLD); }
static int ClonePidfd(void) { return MakesChild(CLONE_PIDFD | SIGCHLD); }

// Whether a child does well; what it tells is not lost with it.
static int ChildDoesWell(int (*work)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(work() ? 0 : 1);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

static int IsTraced(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0; }
static int Ptrace(void) { return ChildDoesWell(IsTraced); }

static int TellsSession(void) {
  const int leader = posix_openpt(O_RDWR | O_NOCTTY);
  char name[64];
  if (setsid() != getpid() || unlockpt(leader) != 0 ||
      ptsname_r(leader, name, sizeof(name)) != 0) {
    return 0;
  }
  const int fd = open(name, O_RDWR);
  return tcgetsid(fd) == getpid();
}
static int Session(void) { return ChildDoesWell(TellsSession); }

static int Signal(int number, int by_thread) {
  signal(number, SIG_IGN);
  return (by_thread ? raise(number) : kill(getpid(), number)) == 0;
}
static int KillHighest(void) { return Signal(64, 0); }
static int KillSecond(void) { return Signal(63, 0); }
static int RaiseHighest(void) { return Signal(64, 1); }
static int RaiseSecond(void) { return Signal(63, 1); }

static int RemapFromNone(void) {
  char* at = Pages(MAP_SHARED);
  char* again = mremap(at, 0, kPage, MREMAP_MAYMOVE);
  return again != MAP_FAILED && again[0] == 5;
}

// With room for two events of which the second would be in the hole.
static int EpollNextToHole(int with_mask) {
  char* at = Pages(MAP_PRIVATE);
  munmap(at + kPage, kPage);
  struct epoll_event event = {.events = EPOLLOUT};
  int ends[2];
  const int set = epoll_create1(0);
  if (pipe(ends) != 0 || epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event) != 0) {
    return 0;
  }
  return syscall(with_mask ? SYS_epoll_pwait : SYS_epoll_wait, set,
                 at + kPage - sizeof(event), 2, 0, NULL, 8) == 1;
}
static int EpollWait(void) { return EpollNextToHole(0); }
static int EpollPwait(void) { return EpollNextToHole(1); }

static int SleepAtBadPointer(void) {
  return syscall(SYS_nanosleep, 8, NULL) == -1 && errno == EFAULT;
}

static int Contains(const char* path, const char* text) {
  char bytes[4096] = "";
  const int fd = open(path, O_RDONLY);
  const ssize_t got = read(fd, bytes, sizeof(bytes) - 1);
  close(fd);
  return got > 0 && memmem(bytes, (size_t)got, text, strlen(text)) != NULL;
}
static int ProcStatus(void) {
  return Contains("/proc/self/status", "Threads:\t1\n");
}
static int ProcComm(void) {
  return Contains("/proc/self/comm", "deviations\n");
}
static int ProcSmaps(void) {
  char line[512];
  FILE* file = fopen("/proc/self/smaps", "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    if (strstr(line, "/qemu") != NULL) {
      return 0;
    }
  }
  return file != NULL;
}
static int ProcEnviron(void) {
  return !Contains("/proc/self/environ", "LD_PRELOAD=");
}
// In pages, as far as no other number comes before it.
static int ProcStatm(void) {
  int pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  return file != NULL && fscanf(file, "%d", &pages) == 1 && pages < 1 << 14;
}
static int Entries(const char* path) {
  DIR* folder = opendir(path);
  int count = -2;  // "." and ".."
  while (folder != NULL && readdir(folder) != NULL) {
    ++count;
  }
  return count;
}
static int ProcTask(void) { return Entries("/proc/self/task") == 1; }
static int ProcFd(void) {
  const int next = dup(0);
  closefrom(next);
  return Entries("/proc/self/fd") == next + 1;
}

static int OwnRobustList(void) {
  struct {
    void* next;
    long offset;
    void* pending;
  } head = {&head, 0, NULL};
  return syscall(SYS_set_robust_list, &head, sizeof(head)) == 0;
}

static volatile int written;

static int VforkedChildWrites(void) {
  const pid_t child = vfork();
  if (child == 0) {
    written = 1;
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return written;
}

static void EndWell(int signal) {
  (void)signal;
  _exit(0);
}

static int UnmasksDivision(void) {
  const unsigned unmasked = 0x1f80 & ~0x200u;
  signal(SIGFPE, EndWell);
  __asm__ volatile("ldmxcsr %0" : : "m"(unmasked));
  volatile double zero = 0;
  volatile double result = 1 / zero;
  (void)result;
  return 0;
}

static int PopsEmptyStack(void) {
  unsigned short status = 0;
  double result = 0;
  __asm__ volatile("fninit\n\tfstpl %1\n\tfnstsw %0"
                   : "=a"(status), "=m"(result));
  return (status & 0x41) == 0x41;
}

static pthread_mutex_t robust;

static void* DieAsOwner(void* unused) {
  pthread_mutex_lock(&robust);
  return unused;
}

static void* LockAndUnlock(void* unused) {
  pthread_mutex_lock(&robust);
  pthread_mutex_unlock(&robust);
  return unused;
}

static int RobustMutex(void* (*work)(void*)) {
  pthread_mutexattr_t attributes;
  pthread_t thread;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &attributes);
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  return pthread_mutex_trylock(&robust);
}

static int RobustOwnerDies(void) {
  return RobustMutex(DieAsOwner) == EOWNERDEAD;
}

// What every program may do: no row is about it.
static int Ordinary(void) {
  int status = 1;
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  struct rlimit stack;
  getrlimit(RLIMIT_STACK, &stack);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  waitpid(child, &status, 0);
  char* at = Pages(MAP_PRIVATE);
  return status == 0 && RobustMutex(LockAndUnlock) == 0 &&
         setrlimit(RLIMIT_STACK, &stack) == 0 &&
         setrlimit(RLIMIT_AS, &none) == 0 &&
         prlimit(0, RLIMIT_DATA, NULL, &stack) == 0 &&
         madvise(at, kPage, MADV_DONTNEED) == 0 && at[0] == 0 &&
         prctl(PR_SET_NAME, "ordinary") == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}

static const struct {
  const char* name;
  int (*is_kernels)(void);
} kCases[] = {{"madvise(MADV_REMOVE)", MadviseRemove},
              {"madvise(MADV_DONTFORK)", MadviseDontFork},
              {"madvise(MADV_WIPEONFORK)", MadviseWipeOnFork},
              {"mmap(MAP_FIXED_NOREPLACE)", MapNoReplace},
              {"setrlimit(RLIMIT_AS)", LimitSpace},
              {"setrlimit(RLIMIT_DATA)", LimitData},
              {"prlimit(RLIMIT_AS)", PrlimitSpace},
              {"prlimit(RLIMIT_DATA)", PrlimitData},
              {"seccomp(SECCOMP_SET_MODE_STRICT)", SeccompStrict},
              {"seccomp(SECCOMP_SET_MODE_FILTER)", SeccompFilter},
              {"prctl(PR_SET_SECCOMP)", PrctlSetSeccomp},
              {"prctl(PR_GET_SECCOMP)", PrctlGetSeccomp},
              {"prctl(PR_GET_TSC)", PrctlGetTsc},
              {"prctl(PR_SET_TSC)", PrctlSetTsc},
              {"prctl(PR_SET_CHILD_SUBREAPER)", PrctlSetSubreaper},
              {"prctl(PR_GET_CHILD_SUBREAPER)", PrctlGetSubreaper},
              {"prctl(PR_GET_TID_ADDRESS)", PrctlTidAddress},
              {"prctl(PR_SET_SYSCALL_USER_DISPATCH)", PrctlUserDispatch},
              {"keyctl", Keyctl},
              {"add_key", AddKey},
              {"request_key", RequestKey},
              {"perf_event_open", PerfEventOpen},
              {"userfaultfd", Userfaultfd},
              {"process_vm_readv", ProcessVmReadv},
              {"process_vm_writev", ProcessVmWritev},
              {"get_mempolicy", GetMempolicy},
              {"fanotify_init", FanotifyInit},
              {"mlock2(MLOCK_ONFAULT)", Mlock2},
              {"clone with flags", CloneFiles},
              {"clone with flags other", ClonePidfd},
              {"ptrace", Ptrace},
              {"ioctl(TIOCGSID)", Session},
              {"kill(SIGRTMAX)", KillHighest},
              {"kill(SIGRTMAX - 1)", KillSecond},
              {"tgkill(SIGRTMAX)", RaiseHighest},
              {"tgkill(SIGRTMAX - 1)", RaiseSecond},
              {"mremap from size 0", RemapFromNone},
              {"epoll_wait with more room", EpollWait},
              {"epoll_pwait with more room", EpollPwait},
              {"nanosleep with a bad pointer", SleepAtBadPointer},
              {"/proc/self/status", ProcStatus},
              {"/proc/self/task", ProcTask},
              {"/proc/self/fd", ProcFd},
              {"/proc/self/smaps", ProcSmaps},
              {"/proc/self/statm", ProcStatm},
              {"/proc/self/comm", ProcComm},
              {"/proc/self/environ", ProcEnviron},
              {"set_robust_list for a list of its own", OwnRobustList},
              {"vfork", VforkedChildWrites},
              {"LDMXCSR", UnmasksDivision},
              {"FNSTSW", PopsEmptyStack},
              {"set_robust_list", RobustOwnerDies},
              {"ordinary", Ordinary}};

// Without an argument it prints their names. Ends by exit(2) alone, which
// seccomp's strict mode allows.
int main(int argc, char** argv) {
  int status = 0;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); ++i) {
    if (argc < 2) {
      puts(kCases[i].name);
    } else if (strcmp(argv[1], kCases[i].name) == 0) {
      status = kCases[i].is_kernels() ? 0 : kDiffers;
    }
  }
  fflush(stdout);
  syscall(SYS_exit, status);
}
