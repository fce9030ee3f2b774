#ifndef CLEW_COMMON_LINUX_REQUEST_TABLE_H_
#define CLEW_COMMON_LINUX_REQUEST_TABLE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/linux/syscall_table.h"

// The table of requests of Linux 6.1 for x86-64. Of some calls one argument
// says what is asked for (the request of ioctl, the command of fcntl, the
// option of prctl), and what the others mean depends on it: one row says all
// that is known about a request. Both recorders, the follower and messages ask
// it; rows of calls alone are in syscall_table.h.
//
//   requests_<calls>.h  the rows             request_row.h  how one is written
//   request_table.h     finds a row          ioctl_size.h   what a number says
//
// Sources: the kernel's headers that the rows' files name, and the manual
// pages ioctl_tty(2), netdevice(7), fcntl(2), prctl(2), semctl(2), msgctl(2),
// shmctl(2) and keyctl(2).

namespace clew {

// How much the kernel writes at the argument RequestRow::behind, if that is not
// null. It writes only if the call succeeds.
enum class RequestExtent : uint8_t {
  kFixed,          // `bytes`
  kUnknown,        // `bytes`, and more behind them
  kInterfaceList,  // a struct ifconf, `bytes`, and the buffer that it names
  kSemaphores,     // `bytes` for each semaphore of the set
  kResult,         // what the call returns, or the argument behind if less
};

struct RequestRow {
  const char* name = nullptr;
  uint32_t number = 0;
  // SyscallRow::arguments of the call, where it makes this request.
  char arguments[kSyscallArguments + 1] = "";
  uint16_t bytes = 0;
  RequestExtent extent = RequestExtent::kFixed;
  uint8_t behind = 1;  // so many arguments behind the request it writes
};

// A call that has requests.
struct RequestCall {
  uint16_t number = 0;   // SyscallRow::number
  uint8_t argument = 0;  // the request
  std::span<const RequestRow> rows;
};

// All of them: the calls whose row has SpecialEffect::kRequest.
std::span<const RequestCall> AllRequestCalls();

// Returns what `request`, an argument of a call that has requests, asks for:
// the kernel looks at 32 bits.
constexpr uint32_t RequestIn(uint64_t request) {
  return static_cast<uint32_t>(request);
}

// Returns nullptr for a call that has no requests.
const RequestCall* FindRequestCall(uint64_t number);

// Returns the row of the request that a call makes; of an ioctl without a row,
// what the request's number says, without a name. nullopt: the call has no
// requests, or nothing is known of this one.
std::optional<RequestRow> FindRequest(
    uint64_t number, const std::array<uint64_t, kSyscallArguments>& args);

// Returns "futex"; of a request that has a row its name, too: "ioctl TCGETS".
std::string CallName(uint64_t number,
                     const std::array<uint64_t, kSyscallArguments>& args);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_REQUEST_TABLE_H_
