#include "follower/kernel/call_writes.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <cstdint>

#include "common/x86/page.h"
#include "follower/kernel/call_check.h"
#include "follower/kernel/call_mappings.h"

namespace clew::follower {
namespace {

bool MapsMemory(uint64_t call_number) {
  return call_number == __NR_mmap || call_number == __NR_shmat ||
         call_number == __NR_mremap;
}

// Calls use(addr, bytes) for each part of a write that is in one page.
template <class Use>
void ForEachPage(uint64_t addr, std::span<const std::byte> bytes, Use use) {
  while (!bytes.empty()) {
    const uint64_t part =
        std::min<uint64_t>(bytes.size(), kPageBytes - addr % kPageBytes);
    use(addr, bytes.first(part));
    bytes = bytes.subspan(part);
    addr += part;
  }
}

void Add(uint64_t addr, std::span<const std::byte> bytes,
         std::vector<MemoryWrite>& to) {
  to.push_back(
      {.addr = TraceeAddr(addr), .bytes = {bytes.begin(), bytes.end()}});
}

// What the call wrote to a file, where that is mapped. One place is enough: a
// store there is one at its mirrors, too.
void AddWrittenToFile(const SyscallInput& call, uint64_t offset,
                      const machine::Memory& memory,
                      std::vector<MemoryWrite>& to) {
  const auto output = OutputOf(memory, call);
  if (!output) {
    return;
  }
  const uint64_t written = std::min<uint64_t>(
      output->size(),
      static_cast<uint64_t>(std::max<int64_t>(call.result.value_or(0), 0)));
  ForEachPage(offset, std::span(*output).first(written),
              [&](uint64_t at, std::span<const std::byte> bytes) {
                const auto page = memory.AddrOfShared(
                    SharedPageNumber(call.shared_memory, at));
                if (page) {
                  Add(*page + at % kPageBytes, bytes, to);
                }
              });
}

}  // namespace

std::span<const MemoryWrite> WritesOf(const SyscallInput& call,
                                      const machine::Memory& memory,
                                      std::vector<MemoryWrite>& room) {
  if (call.written_offset && call.shared_memory != 0) {
    room = call.writes;
    AddWrittenToFile(call, *call.written_offset, memory, room);
    return room;
  }
  const auto has_mirror = [&memory](uint64_t addr, uint64_t size_bytes) {
    return memory.HasMirror(addr, size_bytes);
  };
  if (!MapsMemory(call.number) ||
      std::ranges::none_of(call.writes, [&](const MemoryWrite& write) {
        return has_mirror(write.addr.as_int(), write.bytes.size());
      })) {
    return call.writes;
  }
  for (const MemoryWrite& write : call.writes) {
    ForEachPage(write.addr.as_int(), write.bytes,
                [&](uint64_t addr, std::span<const std::byte> bytes) {
                  if (!has_mirror(addr, bytes.size())) {
                    Add(addr, bytes, room);
                  }
                });
  }
  return room;
}

}  // namespace clew::follower
