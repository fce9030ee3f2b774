#include "common/os/confinement.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace clew {
namespace {

// The descriptors below are those that a child gets.
constexpr int kFirstOwnFd = 10;

// Source: Linux, Documentation/userspace-api/landlock.rst, "Kernel interface".
// Later fields and rights than Debian 12's linux/landlock.h has, of ABI 2.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // since ABI 4
  uint64_t scoped;              // since ABI 6
};
constexpr uint64_t kNetBindTcp = 1;
constexpr uint64_t kNetConnectTcp = 2;
constexpr uint64_t kScopeAbstractSocketsAndSignals = 3;
constexpr uint64_t kTruncate = 1 << 14;  // since ABI 3
constexpr uint64_t kIoctlDev = 1 << 15;  // since ABI 5

constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRun =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kRunBelow = kRun | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriteBelow =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_REG | kTruncate;
// Everything that ABI 1 knows; moving files between folders (ABI 2) is refused
// in any case.
constexpr uint64_t kAllOfAbi1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

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

// What is refused unless a rule allows it.
uint64_t HandledAccess(int version) {
  return kAllOfAbi1 | (version >= 3 ? kTruncate : 0) |
         (version >= 5 ? kIoctlDev : 0);
}

int MakeRuleset(int version, bool may_connect) {
  RulesetAttributes attributes = {HandledAccess(version), 0, 0};
  size_t size = sizeof(uint64_t);
  if (version >= 4) {
    attributes.handled_access_net =
        kNetBindTcp | (may_connect ? 0 : kNetConnectTcp);
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

struct Ruleset {
  int fd;
  uint64_t handled;
};

// What is not there need not be allowed.
Status Allow(const Ruleset& ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? Status()
                           : SystemError(errno, "cannot open " + path);
  }
  const landlock_path_beneath_attr rule = {
      .allowed_access = access & ruleset.handled, .parent_fd = fd};
  const long failed = syscall(SYS_landlock_add_rule, ruleset.fd,
                              LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int add_errno = errno;
  close(fd);
  if (failed != 0) {
    return SystemError(add_errno, "cannot allow a child to use " + path);
  }
  return {};
}

Status AllowAll(const Ruleset& ruleset, const ConfinementRequest& request) {
  for (const char* path : kSystemFolders) {
    CLEW_RETURN_IF_ERROR(Allow(ruleset, path, kRunBelow));
  }
  for (const char* path : kSystemFiles) {
    CLEW_RETURN_IF_ERROR(Allow(ruleset, path, kReadFile));
  }
  CLEW_RETURN_IF_ERROR(
      Allow(ruleset, "/dev/null", kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE));
  for (const std::string& path : request.readable) {
    CLEW_RETURN_IF_ERROR(Allow(ruleset, path, kReadFile));
  }
  CLEW_RETURN_IF_ERROR(Allow(ruleset, request.program, kRun));
  return Allow(ruleset, request.folder, kWriteBelow);
}

// Effective, permitted and inheritable ones. Programs get none either:
// capabilities(7), "Effect of user ID changes", with no_new_privs.
// Not dropped where there are none: a service's own filter may refuse capset.
int DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets = {};
  if (syscall(SYS_capget, &header, sets.data()) != 0) {
    return errno;
  }
  uint32_t any = 0;
  for (__user_cap_data_struct& set : sets) {
    any |= set.effective | set.permitted | set.inheritable;
    set = {};
  }
  return any == 0 || syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

}  // namespace

Result<Confinement> Confinement::Make(const ConfinementRequest& request) {
  const SyscallNeeds needs = {.fork = request.may_fork,
                              .network = request.may_connect};
  const int version = LandlockVersion();
  if (version == 0) {
    return Confinement(-1, needs);
  }
  const int fd = MakeRuleset(version, request.may_connect);
  if (fd < 0) {
    return SystemError(errno, "cannot make a Landlock ruleset");
  }
  Confinement confinement(fd, needs);
  CLEW_RETURN_IF_ERROR(AllowAll({fd, HandledAccess(version)}, request));
  return confinement;
}

Confinement::Confinement(Confinement&& other) noexcept
    : ruleset_(std::exchange(other.ruleset_, -1)), needs_(other.needs_) {}

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
  if (const int error = DropCapabilities(); error != 0) {
    return error;
  }
  return EnterSyscallFilter(needs_);
}

}  // namespace clew
