// tracee FOLDER [--qemu]: threads that make system calls of many kinds and
// write down what each returned and how it changed the memory of the thread's
// arena, into FOLDER/truth.N. With --qemu without recvmmsg, in which
// qemu-x86_64 7.2 crashes.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "truth.h"

enum { kThreads = 4 };

static int in_qemu;

struct Worker {
  int index;
  int truth_fd;
  uint64_t thread;
  uint8_t* arena;
  uint8_t* before;
};

static long Raw(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                     "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static void Tell(const struct Worker* worker, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const long now =
        Raw(__NR_write, worker->truth_fd, (long)((const uint8_t*)bytes + done),
            (long)(size - done), 0, 0, 0);
    if (now <= 0) {
      _exit(3);
    }
    done += (size_t)now;
  }
}

// The call, and the truth about it.
static long Call(struct Worker* worker, long number, long a, long b, long c,
                 long d, long e, long f) {
  struct TruthCall truth = {.arena = (uint64_t)worker->arena,
                            .thread = worker->thread,
                            .number = (uint64_t)number,
                            .args = {(uint64_t)a, (uint64_t)b, (uint64_t)c,
                                     (uint64_t)d, (uint64_t)e, (uint64_t)f}};
  memcpy(worker->before, worker->arena, TRUTH_ARENA_BYTES);
  truth.tsc_before = __rdtsc();
  truth.result = Raw(number, a, b, c, d, e, f);
  truth.tsc_after = __rdtsc();
  if (number == __NR_clone && truth.result == 0) {
    _exit(0);  // the new process
  }
  Tell(worker, &truth, sizeof(truth));
  Tell(worker, worker->before, TRUTH_ARENA_BYTES);
  Tell(worker, worker->arena, TRUTH_ARENA_BYTES);
  return truth.result;
}

#define CALL0(n) Call(w, __NR_##n, 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) Call(w, __NR_##n, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) Call(w, __NR_##n, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) \
  Call(w, __NR_##n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) \
  Call(w, __NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL5(n, a, b, c, d, e) \
  Call(w, __NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL6(n, a, b, c, d, e, f)                                         \
  Call(w, __NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
       (long)(f))

// Places in the arena.
static uint8_t* At(struct Worker* w, size_t offset) {
  return w->arena + offset;
}

static void Files(struct Worker* w) {
  char path[64];
  snprintf(path, sizeof(path), "truth-%d.tmp", w->index);
  const long fd = CALL4(openat, AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
  for (int i = 0; i < 20000; ++i) {
    *At(w, (size_t)i) = (uint8_t)(i * 7 + w->index);
  }
  CALL3(write, fd, At(w, 0), 20000);
  memset(w->arena, 0, TRUTH_ARENA_BYTES);
  CALL4(pread64, fd, At(w, 1000), 20000, 0);  // several pieces
  CALL4(pread64, fd, At(w, 3), 5000, 19990);  // short
  CALL3(lseek, fd, 100, SEEK_SET);
  CALL3(read, fd, At(w, 5), 60);
  CALL3(read, fd, At(w, 5), 500);
  CALL3(read, fd, At(w, 5), 0);
  CALL3(read, fd, 1, 10);         // EFAULT
  CALL3(read, -1, At(w, 0), 10);  // EBADF
  struct iovec* vector = (struct iovec*)At(w, 24000);
  vector[0] = (struct iovec){At(w, 100), 10};
  vector[1] = (struct iovec){At(w, 200), 0};
  vector[2] = (struct iovec){At(w, 300), 5000};
  vector[3] = (struct iovec){At(w, 9000), 5000};
  CALL3(readv, fd, vector, 4);
  CALL4(preadv, fd, vector, 4, 7);
  CALL3(writev, fd, vector, 3);
  CALL2(fstat, fd, At(w, 0));
  CALL2(stat, path, At(w, 200));
  CALL2(lstat, "/nonexistent", At(w, 200));
  CALL4(newfstatat, AT_FDCWD, path, At(w, 400), 0);
  CALL5(statx, AT_FDCWD, path, 0, 0xfff, At(w, 800));
  CALL2(fstatfs, fd, At(w, 1200));
  CALL2(getcwd, At(w, 1500), 4000);
  CALL3(readlink, "/proc/self/exe", At(w, 2000), 1000);
  CALL4(readlinkat, AT_FDCWD, "/proc/self/exe", At(w, 2000), 4);
  CALL4(getxattr, path, "user.none", At(w, 0), 0);
  struct flock* lock = (struct flock*)At(w, 3000);
  *lock = (struct flock){.l_type = F_WRLCK};
  CALL3(fcntl, fd, F_GETLK, lock);
  CALL2(fcntl, fd, F_GETFL);
  CALL3(fcntl, fd, F_GETOWN_EX, At(w, 3040));
  CALL3(fcntl, fd, F_GET_RW_HINT, At(w, 3048));
  CALL3(ioctl, fd, FIONREAD, At(w, 3100));
  CALL3(ioctl, fd, TCGETS, At(w, 3200));  // ENOTTY
  const long folder = CALL3(open, "/proc/self", O_RDONLY | O_DIRECTORY, 0);
  CALL3(getdents64, folder, At(w, 4000), 4096);
  CALL1(close, folder);
  CALL1(close, fd);
  CALL1(unlink, path);
}

static void Pipes(struct Worker* w) {
  int* ends = (int*)At(w, 0);
  CALL2(pipe2, ends, 0);
  const int in = ends[1];
  const int out = ends[0];
  CALL3(write, in, "hello, pipe", 11);
  CALL3(ioctl, out, FIONREAD, At(w, 16));
  struct pollfd* polls = (struct pollfd*)At(w, 64);
  polls[0] = (struct pollfd){.fd = out, .events = POLLIN};
  polls[1] = (struct pollfd){.fd = in, .events = POLLOUT};
  CALL3(poll, polls, 2, 0);
  struct timespec* limit = (struct timespec*)At(w, 128);
  *limit = (struct timespec){.tv_nsec = 1000};
  CALL5(ppoll, polls, 2, limit, 0, 8);
  fd_set* set = (fd_set*)At(w, 256);
  FD_ZERO(set);
  FD_SET(out, set);
  struct timeval* until = (struct timeval*)At(w, 512);
  *until = (struct timeval){.tv_sec = 5};
  CALL5(select, out + 1, set, 0, 0, until);
  const long epoll = CALL1(epoll_create1, 0);
  struct epoll_event* event = (struct epoll_event*)At(w, 600);
  *event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 42};
  CALL4(epoll_ctl, epoll, EPOLL_CTL_ADD, out, event);
  CALL4(epoll_wait, epoll, At(w, 700), 8, 100);
  CALL6(epoll_pwait, epoll, At(w, 800), 8, 100, 0, 8);
  CALL3(read, out, At(w, 1000), 5);
  CALL3(read, out, At(w, 1000), 100);
  CALL4(epoll_wait, epoll, At(w, 700), 8, 1);  // nothing
  CALL1(close, epoll);
  CALL1(close, in);
  CALL3(read, out, At(w, 1000), 100);  // end of file
  CALL1(close, out);
  const long event_fd = CALL2(eventfd2, 7, 0);
  CALL3(read, event_fd, At(w, 32), 8);
  CALL1(close, event_fd);
}

static void Messages(struct Worker* w, int in, int out) {
  struct iovec* vector = (struct iovec*)At(w, 0);
  struct msghdr* message = (struct msghdr*)At(w, 64);
  vector[0] = (struct iovec){At(w, 1000), 100};
  vector[1] = (struct iovec){At(w, 2000), 300};
  memset(At(w, 1000), 'm', 2000);
  *message = (struct msghdr){.msg_iov = vector, .msg_iovlen = 2};
  CALL3(sendmsg, in, message, 0);
  *message = (struct msghdr){.msg_iov = vector,
                             .msg_iovlen = 2,
                             .msg_name = At(w, 3000),
                             .msg_namelen = 110,
                             .msg_control = At(w, 4000),
                             .msg_controllen = 64};
  vector[0].iov_base = At(w, 5000);
  CALL3(recvmsg, out, message, 0);
  struct mmsghdr* many = (struct mmsghdr*)At(w, 128);
  for (int i = 0; i < 3; ++i) {
    CALL3(write, in, At(w, 1000), 10 + i);
    many[i] = (struct mmsghdr){
        .msg_hdr = {.msg_iov = (struct iovec*)At(w, 400 + 16 * (size_t)i),
                    .msg_iovlen = 1}};
    *many[i].msg_hdr.msg_iov =
        (struct iovec){At(w, 6000 + 100 * (size_t)i), 50};
  }
  if (!in_qemu) {
    CALL5(recvmmsg, out, many, 5, MSG_DONTWAIT, 0);
  }
}

static void Sockets(struct Worker* w) {
  int* ends = (int*)At(w, 9000);
  CALL4(socketpair, AF_UNIX, SOCK_DGRAM, 0, ends);
  const int in = ends[0];
  const int out = ends[1];
  CALL6(sendto, in, "datagram of thirty-two characters", 32, 0, 0, 0);
  CALL6(recvfrom, out, At(w, 0), 8, MSG_TRUNC, 0, 0);  // returns 32
  CALL6(sendto, in, "another", 7, 0, 0, 0);
  socklen_t* length = (socklen_t*)At(w, 500);
  *length = 110;
  CALL6(recvfrom, out, At(w, 0), 100, 0, At(w, 600), length);
  *length = 110;
  CALL3(getsockname, out, At(w, 800), length);
  *length = 1;  // shorter than what there is
  CALL3(getsockname, out, At(w, 800), length);
  *length = 4;
  CALL5(getsockopt, out, SOL_SOCKET, SO_TYPE, At(w, 1200), length);
  CALL6(recvfrom, out, At(w, 0), 100, MSG_DONTWAIT, 0, 0);  // EAGAIN
  Messages(w, in, out);
  CALL1(close, in);
  CALL1(close, out);
}

static void Times(struct Worker* w) {
  CALL2(clock_gettime, CLOCK_MONOTONIC, At(w, 0));
  CALL2(clock_getres, CLOCK_REALTIME, At(w, 16));
  CALL2(gettimeofday, At(w, 32), At(w, 48));
  CALL1(time, At(w, 64));
  CALL1(times, At(w, 96));
  CALL2(getrusage, RUSAGE_THREAD, At(w, 200));
  struct timespec* span = (struct timespec*)At(w, 400);
  *span = (struct timespec){.tv_nsec = 1000};
  CALL2(nanosleep, span, At(w, 420));
  CALL4(clock_nanosleep, CLOCK_MONOTONIC, 0, span, At(w, 440));
  CALL2(getitimer, 0, At(w, 500));
  const long timer = CALL2(timerfd_create, CLOCK_MONOTONIC, 0);
  CALL2(timerfd_gettime, timer, At(w, 600));
  CALL1(close, timer);
  uint32_t* word = (uint32_t*)At(w, 700);
  *word = 5;
  CALL6(futex, word, FUTEX_WAIT, 4, 0, 0, 0);     // EAGAIN
  CALL6(futex, word, FUTEX_WAIT, 5, span, 0, 0);  // ETIMEDOUT
  CALL6(futex, word, FUTEX_WAKE, 1, 0, 0, 0);
  CALL6(futex, word, FUTEX_WAKE_OP, 1, 1, At(w, 704),
        FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0));
}

static void Selves(struct Worker* w) {
  CALL0(getpid);
  CALL0(gettid);
  CALL3(getrandom, At(w, 0), 1000, 0);
  CALL1(uname, At(w, 1100));
  CALL1(sysinfo, At(w, 1600));
  CALL2(getgroups, 100, At(w, 1800));
  CALL3(getresuid, At(w, 2300), At(w, 2304), At(w, 2308));
  CALL4(prlimit64, 0, 7, 0, At(w, 2400));
  CALL2(getrlimit, 7, At(w, 2500));
  CALL3(sched_getaffinity, 0, 128, At(w, 2600));
  CALL4(rt_sigprocmask, SIG_BLOCK, 0, At(w, 2800), 8);
  CALL2(sigaltstack, 0, At(w, 2900));
  CALL4(rt_sigaction, SIGUSR1, 0, At(w, 3000), 8);
  CALL2(rt_sigpending, At(w, 3100), 8);
  CALL2(prctl, PR_GET_NAME, At(w, 3200));
  CALL2(prctl, PR_GET_PDEATHSIG, At(w, 3216));
  CALL2(prctl, PR_GET_CHILD_SUBREAPER, At(w, 3220));
  CALL2(prctl, PR_GET_TID_ADDRESS, At(w, 3224));
  CALL2(prctl, PR_GET_SECUREBITS, At(w, 3232));
  CALL2(arch_prctl, ARCH_GET_FS, At(w, 3240));
  CALL2(arch_prctl, ARCH_GET_XCOMP_SUPP, At(w, 3248));
  struct __user_cap_header_struct* cap =
      (struct __user_cap_header_struct*)At(w, 3300);
  cap->version = _LINUX_CAPABILITY_VERSION_3;
  CALL2(capget, cap, At(w, 3400));
  CALL4(wait4, -1, At(w, 3500), WNOHANG, At(w, 3600));  // ECHILD
  CALL3(getcpu, At(w, 3800), At(w, 3804), 0);
  CALL6(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CALL1(brk, 0);
  CALL0(sched_yield);
}

// A process of its own: its number is written in its memory. (QEMU makes none
// that tells nobody of its end.)
static void Processes(struct Worker* w) {
  const long child = CALL5(clone, CLONE_CHILD_SETTID | CLONE_PARENT_SETTID, 0,
                           At(w, 100), At(w, 200), 0);
  CALL4(wait4, child, At(w, 400), __WALL, 0);
  const long other = CALL5(clone, CLONE_PIDFD, 0, At(w, 300), 0, 0);
  CALL4(wait4, other, At(w, 400), __WALL, 0);
  CALL1(close, *(const int*)At(w, 300));
}

static void* Work(void* argument) {
  struct Worker* w = argument;
  w->thread = (uint64_t)gettid();
  for (int round = 0; round < 2; ++round) {
    memset(w->arena, 0xee, TRUTH_ARENA_BYTES);
    Files(w);
    Pipes(w);
    Sockets(w);
    Times(w);
    Selves(w);
    Processes(w);
  }
  return NULL;
}

static struct Worker MakeWorker(int index, const char* folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/truth.%d", folder, index);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int high = dup2(fd, TRUTH_FD_FIRST + index);
  close(fd);
  struct Worker worker = {.index = index, .truth_fd = high};
  worker.arena = aligned_alloc(4096, TRUTH_ARENA_BYTES);
  worker.before = malloc(TRUTH_ARENA_BYTES);
  memset(worker.arena, 0, TRUTH_ARENA_BYTES);
  if (high < 0 || worker.before == NULL) {
    exit(2);
  }
  return worker;
}

int main(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) {
    return 2;
  }
  in_qemu = argc == 3 && strcmp(argv[2], "--qemu") == 0;
  pthread_t threads[kThreads];
  static struct Worker workers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = MakeWorker(i, argv[1]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, &workers[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
