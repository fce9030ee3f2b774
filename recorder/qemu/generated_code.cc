#include "recorder/qemu/generated_code.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace clew::recorder {
namespace {

uint64_t PageOf(uint64_t addr) { return addr / kPageBytes; }
uint64_t PageEnd(uint64_t end) { return (end + kPageBytes - 1) / kPageBytes; }

}  // namespace

bool GeneratedCode::Touches(const Stretches& stretches, uint64_t begin,
                            uint64_t end) {
  const auto behind = stretches.lower_bound(end);
  return behind != stretches.begin() && std::prev(behind)->second > begin;
}

bool GeneratedCode::Holds(const Stretches& stretches, uint64_t begin,
                          uint64_t end) {
  const auto behind = stretches.upper_bound(begin);
  return behind != stretches.begin() && std::prev(behind)->second >= end;
}

void GeneratedCode::Add(Stretches& stretches, uint64_t begin, uint64_t end) {
  for (auto at = stretches.lower_bound(begin);
       at != stretches.end() && at->first <= end; at = stretches.erase(at)) {
    end = std::max(end, at->second);
  }
  const auto before = stretches.lower_bound(begin);
  if (before != stretches.begin() && std::prev(before)->second >= begin) {
    auto& last = std::prev(before)->second;
    last = std::max(last, end);
  } else {
    stretches[begin] = end;
  }
}

void GeneratedCode::MapFile(uint64_t addr, uint64_t size_bytes) {
  const uint64_t end = addr + size_bytes;
  Release(addr, size_bytes);
  if (Touches(past_files_, addr, end) || IsKnown(addr, end)) {
    Replace(addr, end);
  }
  Add(files_, addr, end);
}

void GeneratedCode::Map(const ExecMapping& mapping) {
  MapFile(mapping.addr, mapping.size_bytes);
  if ((mapping.prot & PROT_WRITE) != 0) {
    Release(mapping.addr, mapping.size_bytes);
  }
}

bool GeneratedCode::ReleaseChangedBy(const SyscallCall& call, uint64_t result) {
  const auto& args = call.args;
  switch (call.number) {
    case SYS_mmap:
      return Release(result, args[1]);
    case SYS_munmap:
      return Release(args[0], args[1]);
    case SYS_mprotect:
    case SYS_pkey_mprotect:
      return (args[2] & PROT_WRITE) != 0 && Release(args[0], args[1]);
    case SYS_mremap: {
      const bool from = Release(args[0], args[1]);
      return Release(result, args[2]) || from;
    }
    default:
      return false;
  }
}

bool GeneratedCode::Release(uint64_t addr, uint64_t size_bytes) {
  const uint64_t end = addr + size_bytes;
  bool was_file = false;
  while (Touches(files_, addr, end)) {
    was_file = true;
    const auto at = std::prev(files_.lower_bound(end));
    const auto [file_begin, file_end] = *at;
    files_.erase(at);
    Add(past_files_, std::max(file_begin, addr), std::min(file_end, end));
    if (file_begin < addr) {
      files_[file_begin] = addr;
    }
    if (file_end > end) {
      files_[end] = file_end;
    }
  }
  return was_file;
}

bool GeneratedCode::IsKnown(uint64_t begin, uint64_t end) const {
  for (uint64_t page = PageOf(begin); page < PageEnd(end); ++page) {
    const auto found = pages_.find(page);
    if (found != pages_.end() && found->second.known.any()) {
      return true;
    }
  }
  return false;
}

// What was there is known no more.
void GeneratedCode::Replace(uint64_t begin, uint64_t end) {
  ++latest_version_;
  for (uint64_t page = PageOf(begin); page < PageEnd(end); ++page) {
    pages_[page].version = latest_version_;
    pages_[page].known.reset();
  }
}

uint64_t GeneratedCode::VersionOf(uint64_t begin, uint64_t end) const {
  uint64_t version = 0;
  for (uint64_t page = PageOf(begin); page < PageEnd(end); ++page) {
    const auto found = pages_.find(page);
    version =
        std::max(version, found == pages_.end() ? 0 : found->second.version);
  }
  return version;
}

GeneratedCode::Look GeneratedCode::LookAt(uint64_t addr,
                                          std::span<const std::byte> bytes) {
  const uint64_t end = addr + bytes.size();
  Look look;
  look.generated = !Holds(files_, addr, end);
  if (look.generated) {
    look.changes = Compare(addr, bytes);
    Remember(addr, bytes);
    if (!look.changes.empty() && look.changes.front().replaces) {
      ++latest_version_;
      for (uint64_t page = PageOf(addr); page < PageEnd(end); ++page) {
        pages_[page].version = latest_version_;
      }
    }
  }
  look.version = VersionOf(addr, end);
  return look;
}

// The stretches that are not known; before them all of it, where one byte was
// another. They are told all the same: a reader takes what overlaps nothing for
// there from the start, so what replaces them later has to overlap something.
std::vector<CodeChange> GeneratedCode::Compare(
    uint64_t addr, std::span<const std::byte> bytes) const {
  const CodeChange whole{
      .addr = addr, .size_bytes = bytes.size(), .replaces = true};
  std::vector<CodeChange> changes;
  bool replaced = false;
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    const uint64_t at = addr + i;
    const auto page = pages_.find(PageOf(at));
    const bool known =
        page != pages_.end() && page->second.known.test(at % kPageBytes);
    if (known) {
      replaced |= page->second.bytes[at % kPageBytes] != bytes[i];
      continue;
    }
    if (!changes.empty() &&
        changes.back().addr + changes.back().size_bytes == at) {
      ++changes.back().size_bytes;
    } else {
      changes.push_back({.addr = at, .size_bytes = 1, .replaces = false});
    }
  }
  const bool over_file =
      !changes.empty() && Touches(past_files_, addr, addr + bytes.size());
  if (over_file) {
    return {whole};
  }
  if (replaced) {
    changes.insert(changes.begin(), whole);
  }
  return changes;
}

void GeneratedCode::Remember(uint64_t addr, std::span<const std::byte> bytes) {
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    const uint64_t at = addr + i;
    Page& page = pages_[PageOf(at)];
    page.bytes[at % kPageBytes] = bytes[i];
    page.known.set(at % kPageBytes);
  }
}

}  // namespace clew::recorder
