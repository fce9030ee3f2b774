#include "recorder/qemu/syscall_table.h"

#include <algorithm>
#include <iterator>

namespace clew::recorder {
namespace {

using enum Size;

constexpr SyscallRule FailsOnly(uint64_t number) {
  return {.number = number, .special = Special::kFailsOnly};
}

// Sizes are those of the kernel's structures for x86-64. Ordered by number.
// QEMU 7.2 answers ENOSYS to those that fail only, as kernels without them do.
constexpr SyscallRule kRules[] = {
    // read
    {.number = 0,
     .blocking = Blocking::kReadable,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // write
    {.number = 1,
     .blocking = Blocking::kWritable,
     .output = Output::kBuffer,
     .file_change = FileChange::kAtPosition},
    // open
    {.number = 2},
    // close
    {.number = 3},
    // stat
    {.number = 4, .writes = {{{.arg = 1, .size = kFixed, .bytes = 144}}}},
    // fstat
    {.number = 5, .writes = {{{.arg = 1, .size = kFixed, .bytes = 144}}}},
    // lstat
    {.number = 6, .writes = {{{.arg = 1, .size = kFixed, .bytes = 144}}}},
    // poll
    {.number = 7,
     .blocking = Blocking::kPoll,
     .writes = {{{.arg = 0, .size = kArg, .bytes = 8, .other = 1}}}},
    // lseek
    {.number = 8},
    // mmap
    {.number = 9, .special = Special::kMmap},
    // mprotect
    {.number = 10},
    // munmap
    {.number = 11},
    // brk
    {.number = 12},
    // rt_sigaction
    {.number = 13, .writes = {{{.arg = 2, .size = kFixed, .bytes = 32}}}},
    // rt_sigprocmask
    {.number = 14,
     .writes = {{{.arg = 2, .size = kArg, .bytes = 1, .other = 3}}}},
    // rt_sigreturn
    {.number = 15},
    // ioctl
    {.number = 16, .special = Special::kIoctl},
    // pread64
    {.number = 17, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // pwrite64
    {.number = 18,
     .output = Output::kBuffer,
     .file_change = FileChange::kAtOffset},
    // readv
    {.number = 19,
     .blocking = Blocking::kReadable,
     .writes = {{{.arg = 1, .size = kVector, .other = 2}}}},
    // writev
    {.number = 20,
     .blocking = Blocking::kWritable,
     .output = Output::kVector,
     .file_change = FileChange::kAtPosition},
    // access
    {.number = 21},
    // pipe
    {.number = 22, .writes = {{{.arg = 0, .size = kFixed, .bytes = 8}}}},
    // select
    {.number = 23,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kFdSet},
                 {.arg = 2, .size = kFdSet},
                 {.arg = 3, .size = kFdSet},
                 {.arg = 4, .size = kFixed, .bytes = 16}}}},
    // sched_yield
    {.number = 24},
    // mremap
    {.number = 25},
    // msync
    {.number = 26},
    // mincore
    {.number = 27, .special = Special::kFailsOnly},
    // madvise
    {.number = 28},
    // shmget
    {.number = 29},
    // shmat
    {.number = 30, .special = Special::kSharedMemory},
    // shmctl
    {.number = 31},
    // dup
    {.number = 32},
    // dup2
    {.number = 33},
    // pause
    {.number = 34, .blocking = Blocking::kAlways},
    // nanosleep
    {.number = 35,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kOnInterrupt, .bytes = 16}}}},
    // getitimer
    {.number = 36, .writes = {{{.arg = 1, .size = kFixed, .bytes = 32}}}},
    // alarm
    {.number = 37},
    // setitimer
    {.number = 38, .writes = {{{.arg = 2, .size = kFixed, .bytes = 32}}}},
    // getpid
    {.number = 39},
    // sendfile
    {.number = 40,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 2, .size = kFixed, .bytes = 8}}},
     .file_change = FileChange::kAtPosition},
    // socket
    {.number = 41},
    // connect
    {.number = 42, .blocking = Blocking::kAlways},
    // accept
    {.number = 43,
     .blocking = Blocking::kReadable,
     .writes = {{{.arg = 1, .size = kLengthAt, .other = 2}}}},
    // sendto
    {.number = 44, .blocking = Blocking::kWritable, .output = Output::kBuffer},
    // recvfrom
    {.number = 45,
     .blocking = Blocking::kReadable,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 1},
                 {.arg = 4, .size = kLengthAt, .other = 5}}}},
    // sendmsg
    {.number = 46, .blocking = Blocking::kWritable, .output = Output::kMessage},
    // recvmsg
    {.number = 47,
     .blocking = Blocking::kReadable,
     .special = Special::kReceiveMessage},
    // shutdown
    {.number = 48},
    // bind
    {.number = 49},
    // listen
    {.number = 50},
    // getsockname
    {.number = 51, .writes = {{{.arg = 1, .size = kLengthAt, .other = 2}}}},
    // getpeername
    {.number = 52, .writes = {{{.arg = 1, .size = kLengthAt, .other = 2}}}},
    // socketpair
    {.number = 53, .writes = {{{.arg = 3, .size = kFixed, .bytes = 8}}}},
    // setsockopt
    {.number = 54},
    // getsockopt
    {.number = 55, .writes = {{{.arg = 3, .size = kLengthAt, .other = 4}}}},
    // clone
    {.number = 56, .special = Special::kClone},
    // fork
    {.number = 57},
    // vfork
    {.number = 58},
    // execve
    {.number = 59, .special = Special::kFailsOnly},
    // exit
    {.number = 60},
    // wait4
    {.number = 61,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kFixed, .bytes = 4},
                 {.arg = 3, .size = kFixed, .bytes = 144}}}},
    // kill
    {.number = 62},
    // uname
    {.number = 63, .writes = {{{.arg = 0, .size = kFixed, .bytes = 390}}}},
    // semget
    {.number = 64},
    // semop
    {.number = 65, .blocking = Blocking::kSemaphores},
    // semctl
    {.number = 66, .special = Special::kSemaphoreControl},
    // shmdt
    {.number = 67},
    // msgget
    {.number = 68},
    // msgsnd
    {.number = 69, .blocking = Blocking::kMessageSend},
    // msgrcv
    {.number = 70,
     .blocking = Blocking::kMessageReceive,
     .special = Special::kMessageReceive},
    // msgctl
    {.number = 71, .special = Special::kMessageControl},
    // fcntl
    {.number = 72, .blocking = Blocking::kFcntl, .special = Special::kFcntl},
    // flock
    {.number = 73, .blocking = Blocking::kAlways},
    // fsync
    {.number = 74},
    // fdatasync
    {.number = 75},
    // truncate
    {.number = 76},
    // ftruncate
    {.number = 77, .file_change = FileChange::kTruncated},
    // getdents
    {.number = 78, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // getcwd
    {.number = 79, .writes = {{{.arg = 0, .size = kResult, .bytes = 1}}}},
    // chdir
    {.number = 80},
    // fchdir
    {.number = 81},
    // rename
    {.number = 82},
    // mkdir
    {.number = 83},
    // rmdir
    {.number = 84},
    // creat
    {.number = 85},
    // link
    {.number = 86},
    // unlink
    {.number = 87},
    // symlink
    {.number = 88},
    // readlink
    {.number = 89, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // chmod
    {.number = 90},
    // fchmod
    {.number = 91},
    // chown
    {.number = 92},
    // fchown
    {.number = 93},
    // lchown
    {.number = 94},
    // umask
    {.number = 95},
    // gettimeofday
    {.number = 96,
     .writes = {{{.arg = 0, .size = kFixed, .bytes = 16},
                 {.arg = 1, .size = kFixed, .bytes = 8}}}},
    // getrlimit
    {.number = 97, .writes = {{{.arg = 1, .size = kFixed, .bytes = 16}}}},
    // getrusage
    {.number = 98, .writes = {{{.arg = 1, .size = kFixed, .bytes = 144}}}},
    // sysinfo
    {.number = 99, .writes = {{{.arg = 0, .size = kFixed, .bytes = 112}}}},
    // times
    {.number = 100, .writes = {{{.arg = 0, .size = kFixed, .bytes = 32}}}},
    // getuid
    {.number = 102},
    // getgid
    {.number = 104},
    // setuid
    {.number = 105},
    // setgid
    {.number = 106},
    // geteuid
    {.number = 107},
    // getegid
    {.number = 108},
    // setpgid
    {.number = 109},
    // getppid
    {.number = 110},
    // getpgrp
    {.number = 111},
    // setsid
    {.number = 112},
    // setreuid
    {.number = 113},
    // setregid
    {.number = 114},
    // getgroups
    {.number = 115, .writes = {{{.arg = 1, .size = kResult, .bytes = 4}}}},
    // setgroups
    {.number = 116},
    // setresuid
    {.number = 117},
    // getresuid
    {.number = 118,
     .writes = {{{.arg = 0, .size = kFixed, .bytes = 4},
                 {.arg = 1, .size = kFixed, .bytes = 4},
                 {.arg = 2, .size = kFixed, .bytes = 4}}}},
    // setresgid
    {.number = 119},
    // getresgid
    {.number = 120,
     .writes = {{{.arg = 0, .size = kFixed, .bytes = 4},
                 {.arg = 1, .size = kFixed, .bytes = 4},
                 {.arg = 2, .size = kFixed, .bytes = 4}}}},
    // getpgid
    {.number = 121},
    // setfsuid
    {.number = 122},
    // setfsgid
    {.number = 123},
    // getsid
    {.number = 124},
    // capget
    {.number = 125,
     .writes = {{{.arg = 0, .size = kFixed, .bytes = 8},
                 {.arg = 1, .size = kFixed, .bytes = 24}}}},
    // capset
    {.number = 126},
    // rt_sigpending
    {.number = 127,
     .writes = {{{.arg = 0, .size = kArg, .bytes = 1, .other = 1}}}},
    // rt_sigtimedwait
    {.number = 128,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kFixed, .bytes = 128}}}},
    // rt_sigqueueinfo
    {.number = 129},
    // rt_sigsuspend
    {.number = 130, .blocking = Blocking::kAlways},
    // sigaltstack
    {.number = 131, .writes = {{{.arg = 1, .size = kFixed, .bytes = 24}}}},
    // utime
    {.number = 132},
    // mknod
    {.number = 133},
    // personality
    {.number = 135},
    // statfs
    {.number = 137, .writes = {{{.arg = 1, .size = kFixed, .bytes = 120}}}},
    // fstatfs
    {.number = 138, .writes = {{{.arg = 1, .size = kFixed, .bytes = 120}}}},
    // getpriority
    {.number = 140},
    // setpriority
    {.number = 141},
    // sched_setparam
    {.number = 142},
    // sched_getparam
    {.number = 143, .writes = {{{.arg = 1, .size = kFixed, .bytes = 4}}}},
    // sched_setscheduler
    {.number = 144},
    // sched_getscheduler
    {.number = 145},
    // sched_get_priority_max
    {.number = 146},
    // sched_get_priority_min
    {.number = 147},
    // sched_rr_get_interval
    {.number = 148, .writes = {{{.arg = 1, .size = kFixed, .bytes = 16}}}},
    // mlock
    {.number = 149},
    // munlock
    {.number = 150},
    // mlockall
    {.number = 151},
    // munlockall
    {.number = 152},
    // prctl
    {.number = 157, .special = Special::kPrctl},
    // arch_prctl
    {.number = 158, .special = Special::kArchPrctl},
    // setrlimit
    {.number = 160},
    // sync
    {.number = 162},
    // gettid
    {.number = 186},
    // readahead
    {.number = 187},
    // setxattr
    {.number = 188},
    // lsetxattr
    {.number = 189},
    // fsetxattr
    {.number = 190},
    // getxattr
    {.number = 191, .writes = {{{.arg = 2, .size = kResult, .bytes = 1}}}},
    // lgetxattr
    {.number = 192, .writes = {{{.arg = 2, .size = kResult, .bytes = 1}}}},
    // fgetxattr
    {.number = 193, .writes = {{{.arg = 2, .size = kResult, .bytes = 1}}}},
    // listxattr
    {.number = 194, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // llistxattr
    {.number = 195, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // flistxattr
    {.number = 196, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // removexattr
    {.number = 197},
    // lremovexattr
    {.number = 198},
    // fremovexattr
    {.number = 199},
    // tkill
    {.number = 200},
    // time
    {.number = 201, .writes = {{{.arg = 0, .size = kFixed, .bytes = 8}}}},
    // futex
    {.number = 202, .blocking = Blocking::kFutex, .special = Special::kFutex},
    // sched_setaffinity
    {.number = 203},
    // sched_getaffinity
    {.number = 204, .writes = {{{.arg = 2, .size = kResult, .bytes = 1}}}},
    FailsOnly(206),  // io_setup
    FailsOnly(207),  // io_destroy
    FailsOnly(208),  // io_getevents
    FailsOnly(209),  // io_submit
    FailsOnly(210),  // io_cancel
    // epoll_create
    {.number = 213},
    // getdents64
    {.number = 217, .writes = {{{.arg = 1, .size = kResult, .bytes = 1}}}},
    // set_tid_address
    {.number = 218},
    // semtimedop
    {.number = 220, .blocking = Blocking::kSemaphores},
    // fadvise64
    {.number = 221},
    // timer_create
    {.number = 222, .writes = {{{.arg = 2, .size = kFixed, .bytes = 4}}}},
    // timer_settime
    {.number = 223, .writes = {{{.arg = 3, .size = kFixed, .bytes = 32}}}},
    // timer_gettime
    {.number = 224, .writes = {{{.arg = 1, .size = kFixed, .bytes = 32}}}},
    // timer_getoverrun
    {.number = 225},
    // timer_delete
    {.number = 226},
    // clock_settime
    {.number = 227},
    // clock_gettime
    {.number = 228, .writes = {{{.arg = 1, .size = kFixed, .bytes = 16}}}},
    // clock_getres
    {.number = 229, .writes = {{{.arg = 1, .size = kFixed, .bytes = 16}}}},
    // clock_nanosleep
    {.number = 230,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 3, .size = kOnInterrupt, .bytes = 16}}}},
    // exit_group
    {.number = 231},
    // epoll_wait
    {.number = 232,
     .blocking = Blocking::kEpoll,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 12}}}},
    // epoll_ctl
    {.number = 233},
    // tgkill
    {.number = 234},
    // utimes
    {.number = 235},
    // mbind
    {.number = 237},
    // set_mempolicy
    {.number = 238},
    // get_mempolicy
    {.number = 239, .special = Special::kFailsOnly},
    // mq_open
    {.number = 240},
    // mq_unlink
    {.number = 241},
    // mq_timedsend
    {.number = 242, .blocking = Blocking::kQueueWritable},
    // mq_timedreceive
    {.number = 243,
     .blocking = Blocking::kQueueReadable,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 1},
                 {.arg = 3, .size = kFixed, .bytes = 4}}}},
    // mq_notify
    {.number = 244},
    // mq_getsetattr
    {.number = 245, .writes = {{{.arg = 2, .size = kFixed, .bytes = 64}}}},
    // waitid
    {.number = 247,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 2, .size = kFixed, .bytes = 128},
                 {.arg = 4, .size = kFixed, .bytes = 144}}}},
    FailsOnly(248),  // add_key
    FailsOnly(249),  // request_key
    FailsOnly(250),  // keyctl
    // ioprio_set
    {.number = 251},
    // ioprio_get
    {.number = 252},
    // inotify_init
    {.number = 253},
    // inotify_add_watch
    {.number = 254},
    // inotify_rm_watch
    {.number = 255},
    // migrate_pages
    {.number = 256, .special = Special::kFailsOnly},
    // openat
    {.number = 257},
    // mkdirat
    {.number = 258},
    // mknodat
    {.number = 259},
    // fchownat
    {.number = 260},
    // futimesat
    {.number = 261},
    // newfstatat
    {.number = 262, .writes = {{{.arg = 2, .size = kFixed, .bytes = 144}}}},
    // unlinkat
    {.number = 263},
    // renameat
    {.number = 264},
    // linkat
    {.number = 265},
    // symlinkat
    {.number = 266},
    // readlinkat
    {.number = 267, .writes = {{{.arg = 2, .size = kResult, .bytes = 1}}}},
    // fchmodat
    {.number = 268},
    // faccessat
    {.number = 269},
    // pselect6
    {.number = 270,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kFdSet},
                 {.arg = 2, .size = kFdSet},
                 {.arg = 3, .size = kFdSet},
                 {.arg = 4, .size = kFixed, .bytes = 16}}}},
    // ppoll
    {.number = 271,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 0, .size = kArg, .bytes = 8, .other = 1},
                 {.arg = 2, .size = kFixed, .bytes = 16}}}},
    // set_robust_list
    {.number = 273},
    // get_robust_list
    {.number = 274,
     .writes = {{{.arg = 1, .size = kFixed, .bytes = 8},
                 {.arg = 2, .size = kFixed, .bytes = 8}}}},
    // splice
    {.number = 275,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kFixed, .bytes = 8},
                 {.arg = 3, .size = kFixed, .bytes = 8}}},
     .file_change = FileChange::kOfThird},
    // tee
    {.number = 276, .blocking = Blocking::kAlways},
    // sync_file_range
    {.number = 277},
    // move_pages
    {.number = 279, .special = Special::kFailsOnly},
    // utimensat
    {.number = 280},
    // epoll_pwait
    {.number = 281,
     .blocking = Blocking::kEpoll,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 12}}}},
    // signalfd
    {.number = 282},
    // timerfd_create
    {.number = 283},
    // eventfd
    {.number = 284},
    // fallocate
    {.number = 285, .file_change = FileChange::kAllocated},
    // timerfd_settime
    {.number = 286, .writes = {{{.arg = 3, .size = kFixed, .bytes = 32}}}},
    // timerfd_gettime
    {.number = 287, .writes = {{{.arg = 1, .size = kFixed, .bytes = 32}}}},
    // accept4
    {.number = 288,
     .blocking = Blocking::kReadable,
     .writes = {{{.arg = 1, .size = kLengthAt, .other = 2}}}},
    // signalfd4
    {.number = 289},
    // eventfd2
    {.number = 290},
    // epoll_create1
    {.number = 291},
    // dup3
    {.number = 292},
    // pipe2
    {.number = 293, .writes = {{{.arg = 0, .size = kFixed, .bytes = 8}}}},
    // inotify_init1
    {.number = 294},
    // preadv
    {.number = 295, .writes = {{{.arg = 1, .size = kVector, .other = 2}}}},
    // pwritev
    {.number = 296,
     .output = Output::kVector,
     .file_change = FileChange::kAtOffset},
    // rt_tgsigqueueinfo
    {.number = 297},
    // perf_event_open
    {.number = 298, .special = Special::kFailsOnly},
    // recvmmsg
    {.number = 299,
     .blocking = Blocking::kAlways,
     .special = Special::kReceiveMessages},
    FailsOnly(300),  // fanotify_init
    FailsOnly(301),  // fanotify_mark
    // prlimit64
    {.number = 302, .writes = {{{.arg = 3, .size = kFixed, .bytes = 16}}}},
    // syncfs
    {.number = 306},
    // sendmmsg
    {.number = 307,
     .blocking = Blocking::kWritable,
     .special = Special::kSendMessages},
    // setns
    {.number = 308},
    // getcpu
    {.number = 309,
     .writes = {{{.arg = 0, .size = kFixed, .bytes = 4},
                 {.arg = 1, .size = kFixed, .bytes = 4}}}},
    FailsOnly(310),  // process_vm_readv
    FailsOnly(311),  // process_vm_writev
    // sched_setattr
    {.number = 314},
    // sched_getattr
    {.number = 315,
     .writes = {{{.arg = 1, .size = kArg, .bytes = 1, .other = 2}}}},
    // renameat2
    {.number = 316},
    // seccomp
    {.number = 317, .special = Special::kFailsOnly},
    // getrandom
    {.number = 318, .writes = {{{.arg = 0, .size = kResult, .bytes = 1}}}},
    // memfd_create
    {.number = 319},
    // bpf
    {.number = 321, .special = Special::kFailsOnly},
    // execveat
    {.number = 322, .special = Special::kFailsOnly},
    // userfaultfd
    {.number = 323, .special = Special::kFailsOnly},
    // membarrier
    {.number = 324},
    // mlock2
    {.number = 325},
    // copy_file_range
    {.number = 326,
     .writes = {{{.arg = 1, .size = kFixed, .bytes = 8},
                 {.arg = 3, .size = kFixed, .bytes = 8}}},
     .file_change = FileChange::kOfThird},
    // preadv2
    {.number = 327, .writes = {{{.arg = 1, .size = kVector, .other = 2}}}},
    // pwritev2
    {.number = 328,
     .output = Output::kVector,
     .file_change = FileChange::kAtOffset},
    // pkey_mprotect
    {.number = 329},
    // pkey_alloc
    {.number = 330},
    // pkey_free
    {.number = 331},
    // statx
    {.number = 332, .writes = {{{.arg = 4, .size = kFixed, .bytes = 256}}}},
    // io_pgetevents
    {.number = 333, .special = Special::kFailsOnly},
    // rseq
    {.number = 334, .special = Special::kFailsOnly},
    FailsOnly(425),  // io_uring_setup
    FailsOnly(426),  // io_uring_enter
    FailsOnly(427),  // io_uring_register
    FailsOnly(435),  // clone3
    // close_range
    {.number = 436},
    // openat2
    {.number = 437},
    // faccessat2
    {.number = 439},
    FailsOnly(440),  // process_madvise
    // epoll_pwait2
    {.number = 441,
     .blocking = Blocking::kAlways,
     .writes = {{{.arg = 1, .size = kResult, .bytes = 12}}}},
    FailsOnly(444),  // landlock_create_ruleset
    FailsOnly(445),  // landlock_add_rule
    FailsOnly(446),  // landlock_restrict_self
    FailsOnly(447),  // memfd_secret
    FailsOnly(448),  // process_mrelease
    FailsOnly(449),  // futex_waitv
};
static_assert(std::ranges::is_sorted(kRules, {}, &SyscallRule::number));

}  // namespace

const SyscallRule* FindSyscall(uint64_t number) {
  const auto* end = std::end(kRules);
  const auto* rule = std::lower_bound(
      std::begin(kRules), end, number,
      [](const SyscallRule& r, uint64_t n) { return r.number < n; });
  return rule != end && rule->number == number ? rule : nullptr;
}

}  // namespace clew::recorder
