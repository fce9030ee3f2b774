#ifndef CLEW_RECORDER_BPF_KERNEL_TYPES_H_
#define CLEW_RECORDER_BPF_KERNEL_TYPES_H_

// What inputs.bpf.c needs of the kernel's types and numbers. The loader
// relocates every access to the layout of the kernel that runs (CO-RE), so only
// names matter here, not offsets, and no kernel's vmlinux.h is needed to build.

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

// linux/bpf.h
enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

// asm/unistd_64.h
enum {
  NR_ioctl = 16,
  NR_clone = 56,
  NR_fork = 57,
  NR_vfork = 58,
  NR_exit = 60,
  NR_recvmsg = 47,
  NR_restart_syscall = 219,
  NR_exit_group = 231,
  NR_clone3 = 435,
};

// linux/futex.h
enum {
  FUTEX_WAKE_OP = 5,
  FUTEX_LOCK_PI = 6,
  FUTEX_UNLOCK_PI = 7,
  FUTEX_TRYLOCK_PI = 8,
  FUTEX_WAIT_REQUEUE_PI = 11,
  FUTEX_CMP_REQUEUE_PI = 12,
  FUTEX_LOCK_PI2 = 13,
  FUTEX_PRIVATE_FLAG = 128,
  FUTEX_CLOCK_REALTIME = 256,
  FUTEX_CMD_MASK = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME),
};

// linux/sched.h
enum {
  CLONE_VM = 0x00000100,
  CLONE_PIDFD = 0x00001000,
  CLONE_PARENT_SETTID = 0x00100000,
  CLONE_CHILD_SETTID = 0x01000000,
};

#define EINTR 4
#define ERESTART_RESTARTBLOCK 516
#define TS_COMPAT 2  // asm/thread_info.h

#pragma clang attribute push(__attribute__((preserve_access_index)), \
                             apply_to = record)

struct pt_regs {
  unsigned long r10, r9, r8, ax, dx, si, di, orig_ax, ip, sp;
};

typedef struct {
  int counter;
} atomic_t;

struct signal_struct {
  atomic_t live;
};

struct thread_info {
  __u32 status;
};

struct qstr {
  __u32 len;
  const unsigned char* name;
};

struct dentry {
  struct dentry* d_parent;
  struct qstr d_name;
};

struct vfsmount {
  struct dentry* mnt_root;
};

// Source: fs/mount.h.
struct mount {
  struct mount* mnt_parent;
  struct dentry* mnt_mountpoint;
  struct vfsmount mnt;
};

struct path {
  struct vfsmount* mnt;
  struct dentry* dentry;
};

struct inode {
  unsigned long i_ino;
};

struct file {
  struct path f_path;
  struct inode* f_inode;
};

struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};

struct files_struct {
  struct fdtable* fdt;
};

struct task_struct {
  struct thread_info thread_info;
  int pid;
  int tgid;
  struct files_struct* files;
  struct signal_struct* signal;
  int* clear_child_tid;
};

struct sigaction {
  void* sa_handler;
  unsigned long sa_flags;
};

struct k_sigaction {
  struct sigaction sa;
};

struct kernel_siginfo;

#pragma clang attribute pop

#endif  // CLEW_RECORDER_BPF_KERNEL_TYPES_H_
