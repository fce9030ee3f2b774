#include "follower/kernel/call_mappings.h"

#include <asm/unistd_64.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <utility>

#include "common/digest.h"
#include "common/x86/page.h"

namespace clew::follower {
namespace {

// One that no file is behind is told apart from others by where and when it was
// mapped.
uint64_t SharedMemoryOf(const SyscallInput& call) {
  return call.shared_memory != 0
             ? call.shared_memory
             : MixBits(call.entered_tsc.as_int() ^
                       MixBits(static_cast<uint64_t>(call.result.value_or(0))));
}

void Map(const SyscallInput& call, machine::Memory& memory) {
  const auto addr = static_cast<uint64_t>(call.result.value_or(0));
  const auto prot = static_cast<uint32_t>(call.args[2] & 7);
  const bool is_shared =
      (call.args[3] & MAP_SHARED) != 0 &&
      (call.shared_memory != 0 || (call.args[3] & MAP_ANONYMOUS) != 0);
  MapMemory({addr, call.args[1]}, prot,
            is_shared ? std::optional(SharedPageNumber(SharedMemoryOf(call),
                                                       call.args[5]))
                      : std::nullopt,
            memory);
}

// All of the segment is written.
void AttachSegment(const SyscallInput& call, machine::Memory& memory) {
  if (call.writes.empty()) {
    return;
  }
  const auto addr = static_cast<uint64_t>(call.result.value_or(0));
  const uint64_t bytes = call.writes[0].bytes.size();
  const uint32_t prot =
      (call.args[2] & SHM_RDONLY) != 0 ? kProtRead : kProtRead | kProtWrite;
  MapMemory({addr, bytes}, prot,
            call.shared_memory != 0
                ? std::optional(SharedPageNumber(call.shared_memory, 0))
                : std::nullopt,
            memory);
}

std::vector<MemoryRange> Remap(const SyscallInput& call, uint64_t to,
                               machine::Memory& memory) {
  const uint64_t from = call.args[0];
  const uint64_t old_bytes = RoundUpToPage(call.args[1]);
  const uint64_t new_bytes = RoundUpToPage(call.args[2]);
  const uint32_t prot =
      memory.ProtectionAt(from).value_or(kProtRead | kProtWrite);
  // Of no bytes, it is mapped a second time (mremap(2)).
  auto number = memory.SharedNumberAt(from);
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
    if (number) {
      *number += old_bytes / kPageBytes;
    }
    changed.push_back({to + old_bytes, new_bytes - old_bytes});
    MapMemory(changed.back(), prot, number, memory);
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
      Map(call, memory);
      return {{result, RoundUpToPage(args[1])}};
    case __NR_munmap:
      memory.Unmap(args[0], args[1]);
      return {};
    case __NR_shmat:
      AttachSegment(call, memory);
      return {};
    // It does not say how much it takes away. Of a segment of which that is not
    // known it takes nothing here: such recordings are never said to
    // contradict.
    case __NR_shmdt:
      memory.Unmap(args[0], memory.SharedBytesAt(args[0]));
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

void MapMemory(const MemoryRange& range, uint32_t prot,
               std::optional<uint64_t> page_number, machine::Memory& memory) {
  if (page_number) {
    memory.MapShared(range.addr, range.size_bytes, prot, *page_number);
  } else {
    memory.Map(range.addr, range.size_bytes, prot);
  }
}

uint64_t SharedPageNumber(uint64_t shared_memory, uint64_t offset) {
  return MixBits(shared_memory) / 2 + offset / kPageBytes;  // never wraps
}

}  // namespace clew::follower
