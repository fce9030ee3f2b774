#include "follower/kernel/call_observer.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/linux/futex_command.h"
#include "common/linux/syscall_reads.h"
#include "common/linux/syscall_table.h"
#include "follower/kernel/call_check.h"
#include "follower/kernel/call_writes.h"

namespace clew::follower {
namespace {

// On another way than the recorded one, what says how much a call reads may be
// anything, and the call would touch everything. Of one that does not read what
// it read in the recorded run, so much counts beyond what it returned.
constexpr uint64_t kUnlikeBytesMax = 1u << 16;

uint64_t BytesThatCount(const SyscallInput& call, const CallReads& reads) {
  if (reads.as_recorded) {
    return kSyscallReadBytesMax;
  }
  return kUnlikeBytesMax +
         static_cast<uint64_t>(std::max<int64_t>(call.result.value_or(0), 0));
}

// There, and at its mirrors.
void ObserveChange(machine::AccessObserver& observer,
                   const machine::Memory& memory,
                   machine::ObservedAccess access) {
  observer.OnAccess(access);
  memory.ForEachMirror(
      access.addr, access.size_bytes,
      [&](uint64_t at, uint64_t /*offset*/, uint64_t part_bytes) {
        access.addr = at;
        access.size_bytes = static_cast<uint32_t>(part_bytes);
        observer.OnAccess(access);
      });
}

void ObserveReads(machine::AccessObserver& observer,
                  const machine::Memory& memory, uint64_t ip,
                  uint64_t insn_offset, const SyscallInput& call) {
  const CallReads reads = ReadsOf(memory, call);
  uint64_t left = BytesThatCount(call, reads);
  for (const MemoryRange& range : reads.ranges) {
    const uint64_t size_bytes = std::min(range.size_bytes, left);
    left -= size_bytes;
    if (size_bytes > 0) {
      observer.OnAccess({.ip = ip,
                         .insn_offset = insn_offset,
                         .addr = range.addr,
                         .value = 0,
                         .size_bytes = static_cast<uint32_t>(size_bytes),
                         .kind = AccessKind::kRead});
    }
  }
}

}  // namespace

void ObserveWrites(machine::AccessObserver& observer,
                   const machine::Memory& memory, uint64_t insn_offset,
                   std::span<const MemoryWrite> writes) {
  for (const MemoryWrite& write : writes) {
    if (!write.bytes.empty()) {
      ObserveChange(observer, memory,
                    {.ip = 0,
                     .insn_offset = insn_offset,
                     .addr = write.addr.as_int(),
                     .value = 0,
                     .size_bytes = static_cast<uint32_t>(write.bytes.size()),
                     .kind = AccessKind::kWrite});
    }
  }
}

void ObserveCall(machine::AccessObserver& observer,
                 const machine::Memory& memory, uint64_t ip,
                 uint64_t insn_offset, const SyscallInput& call) {
  if (call.read_digest) {
    ObserveReads(observer, memory, ip, insn_offset, call);
  }
  const auto observe_futex = [&](uint64_t addr) {
    ObserveChange(observer, memory,
                  {.ip = ip,
                   .insn_offset = insn_offset,
                   .addr = addr,
                   .value = 0,
                   .size_bytes = sizeof(uint32_t),
                   .kind = AccessKind::kReadModifyWrite});
  };
  if (call.number == __NR_futex) {
    observe_futex(call.args[0]);
    if (FutexCommand(call.args[1]) == FUTEX_WAKE_OP) {
      observe_futex(call.args[4]);
    }
  } else if (!SyscallMayBlock(call.number)) {
    std::vector<MemoryWrite> room;
    ObserveWrites(observer, memory, insn_offset, WritesOf(call, memory, room));
  }
}

}  // namespace clew::follower
