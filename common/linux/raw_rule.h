#ifndef CLEW_COMMON_LINUX_RAW_RULE_H_
#define CLEW_COMMON_LINUX_RAW_RULE_H_

// What system calls do (syscall_table.h, request_table.h), for code that cannot
// ask the tables: the BPF program of recorder/bpf/, compiled as C, and the
// runtime of recorder/tracer/. raw_rules.h has the rules. All numbers are
// little-endian and naturally aligned; there is no padding that is not named.

#ifdef __cplusplus
#include <cstdint>
namespace clew {
#else
typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef __s64 int64_t;
#endif

// How much memory a call writes: Extent of common/linux/syscall_table.h.
enum RawSize {
  kRawNone = 0,
  kRawFixed = 1,
  kRawCounted = 2,
  kRawFdSet = 3,
  kRawVector = 4,
  kRawResult = 5,
  kRawLengthAt = 6,
  kRawOnInterrupt = 7,
  kRawPages = 8,
  kRawBits = 9,
};

// SyscallOutput of common/linux/syscall_table.h.
enum RawOutputKind {
  kRawNoOutput = 0,
  kRawOutputBuffer = 1,
  kRawOutputVector = 2,
  kRawOutputMessage = 3,
};

// SpecialEffect of common/linux/syscall_table.h, and one for calls of which
// only the failure is known.
enum RawSpecial {
  kRawNotSpecial = 0,
  kRawRequest = 1,
  kRawMmap = 2,
  kRawClone = 3,
  kRawFutex = 4,
  kRawReceiveMessage = 5,
  kRawReceiveMessages = 6,
  kRawSendMessages = 7,
  kRawMessageReceive = 8,
  kRawSharedMemory = 9,
  kRawOtherMemory = 10,
  kRawFailsOnly = 11,
};

// FileChange of common/linux/syscall_table.h; others are kRawFileChanged.
enum RawFileChange {
  kRawNoFileChange = 0,
  kRawFileAtPosition = 1,
  kRawFileAtOffset = 2,
  kRawFileOfThird = 3,
  kRawFileChanged = 4,
};

#define CLEW_RAW_NO_LIMIT 255

struct RawWritten {
  uint8_t arg;
  uint8_t size;   // RawSize
  uint8_t other;  // an argument
  uint8_t limit;  // an argument: no more bytes than it says
  uint32_t bytes;
};

struct RawRule {
  struct RawWritten writes[4];
  uint8_t known;
  uint8_t output;       // RawOutputKind
  uint8_t special;      // RawSpecial
  uint8_t request;      // an argument, for kRawRequest
  uint8_t file_change;  // RawFileChange
  uint8_t unused[3];
};

#define CLEW_RAW_RULES 512
// In place of bytes: what a request writes cannot be told.
#define CLEW_RAW_REQUEST_UNKNOWN 0xffffffffu

// A request of the call `number`, of which it is known how many bytes the
// kernel writes, and where: RequestRow of common/linux/request_table.h.
struct RawRequest {
  uint32_t number;
  uint32_t request;
};

struct RawRequestRule {
  struct RawRequest request;
  struct RawWritten written;  // bytes: or CLEW_RAW_REQUEST_UNKNOWN
};

// There are no more.
#define CLEW_RAW_REQUESTS 1024

#ifdef __cplusplus
static_assert(sizeof(RawRule) == 40 && sizeof(RawRequest) == 8 &&
              sizeof(RawRequestRule) == 16);
}  // namespace clew
#endif

#endif  // CLEW_COMMON_LINUX_RAW_RULE_H_
