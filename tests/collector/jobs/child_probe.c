// A child as a hostile one would be: does what its first argument says. As
// `backtrace` or `solve` it does what the bundle says, whose perf.data has
// lines
// "<command> <mode>" and "group <hexadecimal digit>".
// Plain C, so that a sanitised build of the tests does not sanitise it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
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

enum { kLeftByEach = 3, kLeft = kLeftByEach * (1 + kLeftByEach) };

// Each writes a byte to `told_fd` when it has printed its number.
static void LeaveSome(int depth, int told_fd) {
  for (int i = 0; i < kLeftByEach; ++i) {
    if (fork() == 0) {
      signal(SIGTERM, SIG_IGN);
      signal(SIGHUP, SIG_IGN);
      (void)setsid();
      (void)setpgid(0, 0);
      dprintf(1, "%d\n", getpid());
      if (write(told_fd, "", 1) == 1 && depth > 0) {
        LeaveSome(depth - 1, told_fd);
      }
      for (;;) {
        pause();
      }
    }
  }
}

// Leaves kLeft processes behind that try to get away; each prints its number,
// since only those that have told it are looked for.
static void LeaveBehind(void) {
  int told[2];
  if (pipe(told) != 0) {
    perror("pipe");
    exit(1);
  }
  LeaveSome(1, told[1]);
  char byte;
  for (int i = 0; i < kLeft; ++i) {
    if (read(told[0], &byte, 1) != 1) {
      perror("read");
      exit(1);
    }
  }
}

static void Tell(const char* what, long result) {
  printf("%s: %s\n", what, result >= 0 ? "done" : strerror(errno));
}

static void* Nothing(void* argument) { return argument; }

static void TryNetwork(void) {
  Tell("ipv4", socket(AF_INET, SOCK_STREAM, 0));
  Tell("ipv6", socket(AF_INET6, SOCK_DGRAM, 0));
  Tell("unix", socket(AF_UNIX, SOCK_STREAM, 0));
  Tell("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  Tell("bind", bind(fd, (struct sockaddr*)&address, sizeof(address)));
  Tell("listen", listen(fd, 1));
}

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

static void AttackFile(const char* path) {
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  Tell("truncate", truncate(path, 0));
  Tell("cut by reader", open(path, O_RDONLY | O_TRUNC));
  Tell("cut by nobody", open(path, O_ACCMODE | O_TRUNC));
  Tell("creat", creat(path, 0600));
  Tell("chmod", syscall(SYS_chmod, path, 0777));
  Tell("fchmod", fchmod(0, 0777));
  Tell("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0777));
  Tell("fchmodat2", syscall(452, AT_FDCWD, path, 0777, 0));
  Tell("chown", syscall(SYS_chown, path, getuid(), getgid()));
  Tell("lchown", lchown(path, getuid(), getgid()));
  Tell("fchown", fchown(0, getuid(), getgid()));
  Tell("fchownat", fchownat(AT_FDCWD, path, getuid(), getgid(), 0));
  Tell("utime", syscall(SYS_utime, path, NULL));
  Tell("utimes", syscall(SYS_utimes, path, NULL));
  Tell("futimesat", syscall(SYS_futimesat, AT_FDCWD, path, NULL));
  Tell("utimensat", utimensat(AT_FDCWD, path, times, 0));
  Tell("setxattr", setxattr(path, "user.a", "b", 1, 0));
  Tell("lsetxattr", lsetxattr(path, "user.a", "b", 1, 0));
  Tell("fsetxattr", fsetxattr(0, "user.a", "b", 1, 0));
  Tell("removexattr", removexattr(path, "user.a"));
  Tell("link", link(path, "linked"));
  Tell("symlink", symlink(path, "symlinked"));
  Tell("mkdir", mkdir("made", 0700));
  Tell("mknod", mknod("pipe", S_IFIFO | 0600, 0));
  Tell("inotify", inotify_init());
}

static void AttackProcesses(void) {
  const pid_t parent = getppid();
  const struct sched_param param = {0};
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  struct rlimit limit = {1, 1};
  char byte = 0;
  struct iovec memory = {&byte, 1};
  siginfo_t info = {.si_code = -1};
  struct f_owner_ex owner = {F_OWNER_PID, parent};
  Tell("kill", kill(parent, 0));
  Tell("kill group", kill(0, 0));
  Tell("kill all", kill(-1, 0));
  Tell("tkill", syscall(SYS_tkill, parent, 0));
  Tell("tgkill", syscall(SYS_tgkill, parent, parent, 0));
  Tell("sigqueue", syscall(SYS_rt_sigqueueinfo, parent, 0, &info));
  Tell("tgsigqueue", syscall(SYS_rt_tgsigqueueinfo, parent, parent, 0, &info));
  Tell("pidfd_open", syscall(SYS_pidfd_open, parent, 0));
  Tell("pidfd_send_signal", syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0));
  Tell("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
  Tell("own by signal", fcntl(0, F_SETOWN, parent));
  Tell("own by signal, extended", fcntl(0, F_SETOWN_EX, &owner));
  Tell("choose signal", fcntl(0, F_SETSIG, SIGKILL));
  Tell("outlive parent", prctl(PR_SET_PDEATHSIG, 0));
  Tell("sched_setscheduler", sched_setscheduler(parent, SCHED_IDLE, &param));
  Tell("sched_setparam", sched_setparam(parent, &param));
  Tell("sched_setattr", syscall(SYS_sched_setattr, parent, &param, 0));
  Tell("sched_setaffinity", sched_setaffinity(parent, sizeof(cpus), &cpus));
  Tell("setpriority", setpriority(PRIO_PROCESS, (id_t)parent, 19));
  Tell("setpriority self", setpriority(PRIO_PROCESS, 0, 19));
  Tell("ioprio_set", syscall(SYS_ioprio_set, 1, parent, 3 << 13));
  Tell("prlimit", prlimit(parent, RLIMIT_CORE, &limit, NULL));
  Tell("process_vm_readv", process_vm_readv(parent, &memory, 1, &memory, 1, 0));
  Tell("process_vm_writev",
       process_vm_writev(parent, &memory, 1, &memory, 1, 0));
  Tell("ptrace", ptrace(PTRACE_SEIZE, parent, 0, 0));
  Tell("kcmp", syscall(SYS_kcmp, parent, parent, 0, 0, 0));
  Tell("migrate_pages", syscall(SYS_migrate_pages, parent, 0, NULL, NULL));
  Tell("move_pages", syscall(SYS_move_pages, parent, 0, NULL, NULL, NULL, 0));
  Tell("setsid", setsid());
  Tell("setpgid", setpgid(0, 0));
  Tell("clone for parent",
       syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

static void AttackSystem(void) {
  Tell("socket", socket(AF_INET, SOCK_STREAM, 0));
  Tell("socketpair", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, NULL));
  Tell("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
  Tell("unshare", unshare(CLONE_NEWUSER));
  Tell("setns", setns(0, 0));
  Tell("clone newuser",
       syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  Tell("clone3", syscall(SYS_clone3, NULL, 0));
  Tell("mount", mount(NULL, "/", NULL, MS_REMOUNT, NULL));
  Tell("chroot", chroot("."));
  Tell("bpf", syscall(SYS_bpf, 0, NULL, 0));
  Tell("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  Tell("userfaultfd", syscall(SYS_userfaultfd, 1));
  Tell("keyctl", syscall(SYS_keyctl, 0, 0, 0));
  Tell("memfd_create", syscall(SYS_memfd_create, "a", 0));
  Tell("shmget", syscall(SYS_shmget, 0, 4096, 0600 | 01000));
  Tell("mq_open", syscall(SYS_mq_open, "a", O_CREAT, 0600, NULL));
  Tell("setuid", setuid(getuid()));
  Tell("personality", syscall(SYS_personality, 0xffffffff));
  Tell("terminal",
       ioctl(0, TIOCSTI, "x") < 0 && errno == ENOTTY ? (errno = EPERM, -1) : 0);
}

// By calls whose arguments or number refuse them, whatever may be opened.
static void AttackByCalls(char** paths) {
  AttackFile(paths[0]);
  AttackProcesses();
  AttackSystem();
}

static void AttackByNames(char** paths) {
  Tell("read", open(paths[0], O_RDONLY));
  Tell("write", open(paths[0], O_WRONLY));
  Tell("cut", open(paths[0], O_WRONLY | O_TRUNC));
  Tell("unlink", unlink(paths[0]));
  Tell("rename", rename(paths[0], "taken"));
  Tell("list", open("/", O_RDONLY | O_DIRECTORY));
  Tell("passwords", open("/etc/passwd", O_RDONLY));
  Tell("maps", open("/proc/self/maps", O_RDONLY));
  Tell("memory", open("/proc/self/mem", O_RDWR));
  Tell("adjust", open("/proc/self/oom_score_adj", O_WRONLY));
}

static void TellCapabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
  if (syscall(SYS_capget, &header, sets) != 0) {
    perror("capget");
    exit(1);
  }
  printf("%x %x\n", sets[0].permitted | sets[1].permitted,
         sets[0].effective | sets[1].effective);
}

static void* Abort(void* argument) {
  (void)argument;
  abort();
}

static void AbortInThread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, Abort, NULL);
  pthread_join(thread, NULL);
}

// A process that it started has another number, and ends by signal, too.
static void AbortInProcess(void) {
  const pid_t child = fork();
  if (child == 0) {
    abort();
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    abort();
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
      "{\"signature_rules\":2,\"signature\": \"%s\", \"title\": \"SIGABRT in "
      "group %c\", "
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
  } else if (strcmp(mode, "model differs") == 0) {
    printf(
        "{\"verdict\": \"model-differs\", \"model_difference\": "
        "{\"text\": \"after `mremap`\"}}\n");
    return 70;
  } else if (strcmp(mode, "unknown") == 0) {
    printf("{\"verdict\": \"unknown\", \"reason\": \"time limit\"}\n");
    return 5;
  } else if (strcmp(mode, "lie") == 0) {
    TellWitness();
    return 5;
  } else if (strcmp(mode, "garbage") == 0) {
    printf("[[[[");
  } else if (strcmp(mode, "no signature") == 0) {
    printf("{\"signature_rules\":2,\"signature\": 7, \"title\": []}");
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
    LeaveBehind();
  } else if (strcmp(mode, "leave and hang") == 0) {
    LeaveBehind();
    for (;;) {
      pause();
    }
  } else if (strcmp(mode, "network") == 0) {
    TryNetwork();
  } else if (strcmp(mode, "try") == 0) {
    TryAll(arguments);
  } else if (strcmp(mode, "attack calls") == 0) {
    AttackByCalls(arguments);
  } else if (strcmp(mode, "attack") == 0) {
    AttackByCalls(arguments);
    AttackByNames(arguments);
  } else if (strcmp(mode, "capabilities") == 0) {
    TellCapabilities();
  } else if (strcmp(mode, "abort") == 0) {
    abort();
  } else if (strcmp(mode, "abort in thread") == 0) {
    AbortInThread();
  } else if (strcmp(mode, "abort in process") == 0) {
    AbortInProcess();
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
