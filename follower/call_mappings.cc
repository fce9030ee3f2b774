#include "follower/call_mappings.h"

#include <asm/unistd_64.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <utility>

#include "common/x86/page.h"

namespace clew::follower {
namespace {

std::vector<MemoryRange> Remap(const SyscallInput& call, uint64_t to,
                               machine::Memory& memory) {
  const uint64_t from = call.args[0];
  const uint64_t old_bytes = RoundUpToPage(call.args[1]);
  const uint64_t new_bytes = RoundUpToPage(call.args[2]);
  const uint32_t prot =
      memory.ProtectionAt(from).value_or(kProtRead | kProtWrite);
  std::vector<MemoryRange> changed;
  if (to != from) {
    memory.Move(from, to, std::min(old_bytes, new_bytes));
    changed.push_back({to, std::min(old_bytes, new_bytes)});
  }
  if ((call.args[3] & MREMAP_DONTUNMAP) != 0) {  // of no file: zeros
    memory.Map(from, old_bytes, prot);
    changed.push_back({from, old_bytes});
  } else if (new_bytes < old_bytes) {
    memory.Unmap(from + new_bytes, old_bytes - new_bytes);
  }
  if (new_bytes > old_bytes) {
    memory.Map(to + old_bytes, new_bytes - old_bytes, prot);
    changed.push_back({to + old_bytes, new_bytes - old_bytes});
  }
  return changed;
}

std::vector<MemoryRange> MoveBreak(uint64_t from, uint64_t to,
                                   machine::Memory& memory) {
  from = RoundUpToPage(from);
  to = RoundUpToPage(to);
  if (to > from) {
    memory.Map(from, to - from, kProtRead | kProtWrite);
    return {{from, to - from}};
  }
  if (to < from) {
    memory.Unmap(to, from - to);
  }
  return {};
}

}  // namespace

MemoryRange RoomFoundBy(const SyscallInput& call) {
  const auto& args = call.args;
  const auto result = static_cast<uint64_t>(call.result.value_or(0));
  switch (call.number) {
    case __NR_mmap:
      return (args[3] & MAP_FIXED) != 0
                 ? MemoryRange()
                 : MemoryRange{result, RoundUpToPage(args[1])};
    case __NR_mremap:
      if (result == args[0]) {
        const uint64_t old_bytes = RoundUpToPage(args[1]);
        const uint64_t new_bytes = RoundUpToPage(args[2]);
        return {result + old_bytes, new_bytes - std::min(old_bytes, new_bytes)};
      }
      return (args[3] & MREMAP_FIXED) != 0
                 ? MemoryRange()
                 : MemoryRange{result, RoundUpToPage(args[2])};
    default:
      return {};
  }
}

bool IsFree(const machine::Memory& memory, const MemoryRange& range) {
  for (uint64_t at = 0; at < range.size_bytes; at += kPageBytes) {
    if (memory.ProtectionAt(range.addr + at)) {
      return false;
    }
  }
  return true;
}

std::vector<MemoryRange> ApplyMappings(const SyscallInput& call,
                                       machine::Memory& memory, uint64_t& brk) {
  const uint64_t result = static_cast<uint64_t>(call.result.value_or(0));
  const auto& args = call.args;
  switch (call.number) {
    case __NR_mmap:
      memory.Map(result, args[1], static_cast<uint32_t>(args[2] & 7));
      return {{result, RoundUpToPage(args[1])}};
    case __NR_munmap:
      memory.Unmap(args[0], args[1]);
      return {};
    // All of the segment is written. shmdt does not say how much it takes away,
    // and takes nothing here: such recordings are never said to contradict.
    case __NR_shmat:
      if (!call.writes.empty()) {
        memory.Map(
            result, call.writes[0].bytes.size(),
            (args[2] & SHM_RDONLY) != 0 ? kProtRead : kProtRead | kProtWrite);
      }
      return {};
    case __NR_mprotect:
      memory.Protect(args[0], args[1], static_cast<uint32_t>(args[2] & 7));
      return {};
    case __NR_madvise:
      if (static_cast<uint32_t>(args[2]) == MADV_DONTNEED) {
        // Of what has a file behind it, the contents are among the writes.
        memory.Clear(args[0], args[1]);
        return {{args[0], RoundUpToPage(args[1])}};
      }
      return {};
    case __NR_mremap:
      return Remap(call, result, memory);
    case __NR_brk:
      return MoveBreak(std::exchange(brk, result), result, memory);
    default:
      return {};
  }
}

}  // namespace clew::follower
