#include "solver/descriptor_use.h"

#include <asm/unistd_64.h>

#include <initializer_list>

namespace clew::solver {
namespace {

uint32_t Number(uint64_t argument) { return static_cast<uint32_t>(argument); }

std::vector<DescriptorUse> Used(std::initializer_list<uint64_t> arguments) {
  std::vector<DescriptorUse> uses;
  for (const uint64_t argument : arguments) {
    uses.push_back({.descriptor = Number(argument)});
  }
  return uses;
}

// With what the call made, where it succeeded.
std::vector<DescriptorUse> Made(const SyscallInput& call,
                                std::vector<DescriptorUse> uses) {
  if (const int64_t made = call.result.value_or(-1); made >= 0) {
    uses.push_back(
        {.descriptor = Number(static_cast<uint64_t>(made)), .changes = true});
  }
  return uses;
}

}  // namespace

std::vector<DescriptorUse> UsesOf(const SyscallInput& call) {
  switch (call.number) {
    case __NR_close:
    case __NR_lseek:
      return {{.descriptor = Number(call.args[0]),
               .changes = call.result.value_or(-1) >= 0}};
    case __NR_open:
    case __NR_openat:
    case __NR_creat:
    case __NR_socket:
    case __NR_eventfd2:
    case __NR_epoll_create1:
    case __NR_timerfd_create:
    case __NR_memfd_create:
      return Made(call, {});
    case __NR_dup:
    case __NR_dup2:
    case __NR_dup3:
    case __NR_accept:
    case __NR_accept4:
      return Made(call, Used({call.args[0]}));
    case __NR_read:
    case __NR_readv:
    case __NR_pread64:
    case __NR_preadv:
    case __NR_write:
    case __NR_writev:
    case __NR_pwrite64:
    case __NR_pwritev:
    case __NR_recvfrom:
    case __NR_recvmsg:
    case __NR_recvmmsg:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_sendmmsg:
    case __NR_connect:
    case __NR_bind:
    case __NR_listen:
    case __NR_shutdown:
    case __NR_setsockopt:
    case __NR_getsockopt:
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_ftruncate:
    case __NR_fstat:
    case __NR_fcntl:
    case __NR_ioctl:
    case __NR_getdents64:
    case __NR_epoll_wait:
    case __NR_epoll_pwait:
    case __NR_timerfd_settime:
      return Used({call.args[0]});
    case __NR_epoll_ctl:
      return Used({call.args[0], call.args[2]});
    case __NR_sendfile:
      return Used({call.args[0], call.args[1]});
    default:
      return {};
  }
}

}  // namespace clew::solver
