#include "collector/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace clew::collector {
namespace {

// ---- seccomp

constexpr std::array kRefused = {
    // Talking to others, and what could be used instead of a refused call.
    SYS_socket, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
    SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_process_madvise,
    SYS_msgget, SYS_semget, SYS_shmget, SYS_mq_open,
    // Escaping from the session, which is killed as a whole.
    SYS_setsid, SYS_setpgid,
    // What an ordinary user may ask of the kernel and a decoder need not.
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key,
    SYS_request_key, SYS_name_to_handle_at, SYS_open_by_handle_at,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_settimeofday,
    SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_iopl, SYS_ioperm,
    SYS_quotactl, SYS_syslog, SYS_fanotify_init, SYS_personality,
    SYS_modify_ldt};

constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP |
                                    CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// linux/audit.h has no name for it: calls of the x32 ABI.
constexpr uint32_t kX32Bit = 0x40000000;

constexpr uint32_t ArgumentOffset(size_t index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

// A filter as the kernel runs it; linux/filter.h, "classic BPF".
template <size_t kMax>
class FilterBuilder {
 public:
  constexpr void Add(uint32_t code, uint32_t k, uint8_t if_true = 0,
                     uint8_t if_false = 0) {
    code_.at(size_++) = {static_cast<uint16_t>(code), if_true, if_false, k};
  }
  constexpr void Load(uint32_t offset) {
    Add(BPF_LD | BPF_W | BPF_ABS, offset);
  }
  constexpr void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }
  constexpr void Refuse(int error) {
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }
  // `error` where the loaded value is `value`.
  constexpr void RefuseIfEqual(long value, int error) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(value), 0, 1);
    Refuse(error);
  }
  constexpr sock_fprog Program() {
    return {static_cast<uint16_t>(size_), code_.data()};
  }

 private:
  std::array<sock_filter, kMax> code_ = {};
  size_t size_ = 0;
};

using Filter = FilterBuilder<256>;

constexpr void AddCloneRules(Filter& filter, bool may_fork) {
  // Its flags are in memory, where a filter cannot look; the C library then
  // uses clone.
  filter.RefuseIfEqual(SYS_clone3, ENOSYS);
  if (!may_fork) {
    filter.RefuseIfEqual(SYS_fork, EPERM);
    filter.RefuseIfEqual(SYS_vfork, EPERM);
  }
  filter.Add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, may_fork ? 4 : 6);
  filter.Load(ArgumentOffset(0));
  filter.Add(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1);
  filter.Refuse(EPERM);
  if (!may_fork) {
    filter.Add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    filter.Refuse(EPERM);
  }
  filter.Return(SECCOMP_RET_ALLOW);
}

// Of another process than the caller's own, which is 0.
constexpr void AddLimitRules(Filter& filter) {
  filter.Add(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4);
  filter.Load(ArgumentOffset(0));
  filter.Add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
  filter.Refuse(EPERM);
  filter.Return(SECCOMP_RET_ALLOW);
}

constexpr Filter MakeFilter(bool may_fork) {
  Filter filter;
  filter.Load(offsetof(seccomp_data, arch));
  filter.Add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  filter.Load(offsetof(seccomp_data, nr));
  filter.Add(BPF_JMP | BPF_JSET | BPF_K, kX32Bit, 0, 1);
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  for (const long number : kRefused) {
    filter.RefuseIfEqual(number, EPERM);
  }
  AddCloneRules(filter, may_fork);
  AddLimitRules(filter);
  filter.Return(SECCOMP_RET_ALLOW);
  return filter;
}

int EnterFilter(bool may_fork) {
  static constexpr Filter kMayFork = MakeFilter(true);
  static constexpr Filter kMayNotFork = MakeFilter(false);
  Filter filter = may_fork ? kMayFork : kMayNotFork;
  const sock_fprog program = filter.Program();
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : errno;
}

// ---- Landlock

// The descriptors below are those that a child gets.
constexpr int kFirstOwnFd = 10;

// Source: Linux, Documentation/userspace-api/landlock.rst, "Kernel interface".
// Later fields than Debian 12's linux/landlock.h has, which is of ABI 2.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // since ABI 4
  uint64_t scoped;              // since ABI 6
};
constexpr uint64_t kNetBindAndConnectTcp = 3;
constexpr uint64_t kScopeAbstractSocketsAndSignals = 3;

constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRun =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRunBelow = kRun | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriteBelow =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_REG;
// Everything that ABI 1 knows; moving files between folders (ABI 2) is refused
// there in any case.
constexpr uint64_t kAll = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

constexpr std::array<const char*, 4> kSystemFolders = {"/usr", "/lib", "/lib64",
                                                       "/bin"};
constexpr std::array<const char*, 2> kSystemFiles = {"/etc/ld.so.cache",
                                                     "/dev/urandom"};

// The number of the interface's version; 0: none.
int LandlockVersion() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                               LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

int MakeRuleset(int version) {
  RulesetAttributes attributes = {kAll, 0, 0};
  size_t size = sizeof(uint64_t);
  if (version >= 4) {
    attributes.handled_access_net = kNetBindAndConnectTcp;
    size = 2 * sizeof(uint64_t);
  }
  if (version >= 6) {
    attributes.scoped = kScopeAbstractSocketsAndSignals;
    size = sizeof(attributes);
  }
  const int low = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (low < 0) {
    return low;
  }
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kFirstOwnFd);
  close(low);
  return high;
}

// What is not there need not be allowed.
Status Allow(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? Status()
                           : SystemError(errno, "cannot open " + path);
  }
  const landlock_path_beneath_attr rule = {.allowed_access = access,
                                           .parent_fd = fd};
  const long failed = syscall(SYS_landlock_add_rule, ruleset,
                              LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int add_errno = errno;
  close(fd);
  if (failed != 0) {
    return SystemError(add_errno, "cannot allow a child to use " + path);
  }
  return {};
}

Status AllowAll(int ruleset, const std::string& program,
                const std::string& folder) {
  for (const char* path : kSystemFolders) {
    CLEW_RETURN_IF_ERROR(Allow(ruleset, path, kRunBelow));
  }
  for (const char* path : kSystemFiles) {
    CLEW_RETURN_IF_ERROR(Allow(ruleset, path, kReadFile));
  }
  CLEW_RETURN_IF_ERROR(
      Allow(ruleset, "/dev/null", kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE));
  CLEW_RETURN_IF_ERROR(Allow(ruleset, program, kRun));
  return Allow(ruleset, folder, kWriteBelow);
}

}  // namespace

Result<Confinement> Confinement::Make(const std::string& program,
                                      const std::string& folder,
                                      bool may_fork) {
  const int version = LandlockVersion();
  if (version == 0) {
    return Confinement(-1, may_fork);
  }
  const int ruleset = MakeRuleset(version);
  if (ruleset < 0) {
    return SystemError(errno, "cannot make a Landlock ruleset");
  }
  Confinement confinement(ruleset, may_fork);
  CLEW_RETURN_IF_ERROR(AllowAll(ruleset, program, folder));
  return confinement;
}

Confinement::Confinement(Confinement&& other) noexcept
    : ruleset_(std::exchange(other.ruleset_, -1)), may_fork_(other.may_fork_) {}

Confinement::~Confinement() {
  if (ruleset_ >= 0) {
    close(ruleset_);
  }
}

int Confinement::Enter() const {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return errno;
  }
  if (ruleset_ >= 0 && syscall(SYS_landlock_restrict_self, ruleset_, 0) != 0) {
    return errno;
  }
  return EnterFilter(may_fork_);
}

}  // namespace clew::collector
