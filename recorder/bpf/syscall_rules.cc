#include "recorder/bpf/syscall_rules.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <array>

#include "recorder/qemu/syscall_table.h"

namespace clew::recorder::bpf {
namespace {

// The kernel's side is C and has copies of these.
static_assert(static_cast<int>(Size::kNone) == kRawNone);
static_assert(static_cast<int>(Size::kFixed) == kRawFixed);
static_assert(static_cast<int>(Size::kResult) == kRawResult);
static_assert(static_cast<int>(Size::kArg) == kRawArg);
static_assert(static_cast<int>(Size::kLengthAt) == kRawLengthAt);
static_assert(static_cast<int>(Size::kVector) == kRawVector);
static_assert(static_cast<int>(Size::kFdSet) == kRawFdSet);
static_assert(static_cast<int>(Size::kOnInterrupt) == kRawOnInterrupt);
static_assert(static_cast<int>(Output::kNone) == kRawNoOutput);
static_assert(static_cast<int>(Output::kBuffer) == kRawOutputBuffer);
static_assert(static_cast<int>(Output::kVector) == kRawOutputVector);
static_assert(static_cast<int>(Output::kMessage) == kRawOutputMessage);
static_assert(static_cast<int>(Special::kNone) == kRawNotSpecial);
static_assert(static_cast<int>(Special::kIoctl) == kRawIoctl);
static_assert(static_cast<int>(Special::kFcntl) == kRawFcntl);
static_assert(static_cast<int>(Special::kMmap) == kRawMmap);
static_assert(static_cast<int>(Special::kClone) == kRawClone);
static_assert(static_cast<int>(Special::kFutex) == kRawFutex);
static_assert(static_cast<int>(Special::kPrctl) == kRawPrctl);
static_assert(static_cast<int>(Special::kArchPrctl) == kRawArchPrctl);
static_assert(static_cast<int>(Special::kReceiveMessage) == kRawReceiveMessage);
static_assert(static_cast<int>(Special::kReceiveMessages) ==
              kRawReceiveMessages);
static_assert(static_cast<int>(Special::kSendMessages) == kRawSendMessages);
static_assert(static_cast<int>(Special::kFailsOnly) == kRawFailsOnly);
static_assert(static_cast<int>(Special::kSemaphoreControl) ==
              kRawSemaphoreControl);
static_assert(static_cast<int>(Special::kMessageControl) == kRawMessageControl);
static_assert(static_cast<int>(Special::kMessageReceive) == kRawMessageReceive);
static_assert(static_cast<int>(Special::kSharedMemory) == kRawSharedMemory);

// Calls that change nothing in the memory of the caller.
constexpr std::array<uint64_t, 8> kWriteNothing = {
    __NR_fork,        __NR_vfork,      __NR_execve, __NR_execveat,
    __NR_close_range, __NR_membarrier, __NR_rseq,   __NR_memfd_create};

// The argument that says how long the buffer is: such calls may return more
// than they wrote (getxattr with no buffer, recv with MSG_TRUNC).
uint8_t LimitOf(uint64_t number, const Written& written) {
  if (written.size != Size::kResult || written.bytes != 1) {
    return CLEW_RAW_NO_LIMIT;
  }
  if (number == __NR_sched_getaffinity) {
    return 1;
  }
  return static_cast<uint8_t>(written.arg + 1);
}

RawRule FromTable(const SyscallRule& from) {
  RawRule rule = {};
  rule.known = 1;
  rule.output = static_cast<uint8_t>(from.output);
  rule.special = static_cast<uint8_t>(from.special);
  for (size_t i = 0; i < from.writes.size(); ++i) {
    const Written& written = from.writes[i];
    rule.writes[i] = {.arg = written.arg,
                      .size = static_cast<uint8_t>(written.size),
                      .other = written.other,
                      .limit = LimitOf(from.number, written),
                      .bytes = written.bytes};
  }
  return rule;
}

}  // namespace

RawRule RuleFor(uint64_t number) {
  if (number == __NR_clone3) {
    RawRule rule = {};
    rule.known = 1;
    rule.special = kRawClone;
    return rule;
  }
  const SyscallRule* const row = FindSyscall(number);
  if (row != nullptr) {
    return FromTable(*row);
  }
  RawRule rule = {};
  rule.known = std::ranges::find(kWriteNothing, number) != kWriteNothing.end();
  return rule;
}

}  // namespace clew::recorder::bpf
