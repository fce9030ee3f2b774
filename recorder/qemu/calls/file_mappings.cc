#include "recorder/qemu/calls/file_mappings.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "common/linux/shared_memory.h"
#include "common/os/system_file.h"
#include "common/x86/page.h"
#include "recorder/qemu/calls/program_descriptor.h"
#include "recorder/qemu/page_content.h"

namespace clew::recorder {
namespace {

// `bytes` that end where the descriptor's position is now.
std::optional<FileRange> BeforePosition(int fd, uint64_t bytes,
                                        const GuestMemory& memory) {
  const off_t position = ProgramDescriptor(memory, fd).Position();
  const auto end = static_cast<uint64_t>(position);
  if (position < 0 || end < bytes) {
    return std::nullopt;
  }
  return FileRange{.fd = fd, .begin = end - bytes, .end = end};
}

// `bytes` at `offset`; Linux appends them to a file open for appending
// (pwrite(2), BUGS).
std::optional<FileRange> AtOffset(int fd, uint64_t offset, uint64_t bytes,
                                  const GuestMemory& memory) {
  const ProgramDescriptor descriptor(memory, fd);
  const auto info = descriptor.Stat();
  if ((descriptor.Flags() & O_APPEND) != 0 && info) {
    offset = static_cast<uint64_t>(info->st_size) - bytes;
  }
  return FileRange{.fd = fd, .begin = offset, .end = offset + bytes};
}

// Calls that advance an offset in memory, or else the position.
std::optional<FileRange> BeforeOffsetAt(int fd, uint64_t addr, uint64_t bytes,
                                        const GuestMemory& memory) {
  if (addr == 0) {
    return BeforePosition(fd, bytes, memory);
  }
  const auto end = memory.Load<uint64_t>(addr);
  if (!end || *end < bytes) {
    return std::nullopt;
  }
  return FileRange{.fd = fd, .begin = *end - bytes, .end = *end};
}

std::optional<FileRange> Allocated(const SyscallCall& call, int fd) {
  constexpr uint64_t kClears = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  constexpr uint64_t kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
  const auto& args = call.args;
  if ((args[1] & kMoves) != 0) {
    return FileRange{.fd = fd, .begin = args[2], .end = UINT64_MAX};
  }
  if ((args[1] & kClears) != 0) {
    return FileRange{.fd = fd, .begin = args[2], .end = args[2] + args[3]};
  }
  return std::nullopt;
}

std::optional<FileRange> WrittenRange(const SyscallCall& call, uint64_t bytes,
                                      const GuestMemory& memory) {
  const auto& args = call.args;
  const int first = static_cast<int>(args[0]);
  const int third = static_cast<int>(args[2]);
  constexpr uint64_t kAtPosition = UINT64_MAX;
  switch (call.row->file_change) {
    case FileChange::kNone:
      return std::nullopt;
    case FileChange::kAtPosition:
      return BeforePosition(first, bytes, memory);
    case FileChange::kAtOffset:
      return args[3] == kAtPosition ? BeforePosition(first, bytes, memory)
                                    : AtOffset(first, args[3], bytes, memory);
    case FileChange::kOfThird:
      return BeforeOffsetAt(third, args[3], bytes, memory);
    case FileChange::kTruncated:
      return FileRange{
          .fd = first, .begin = args[1], .end = RoundUpToPage(args[1])};
    case FileChange::kAllocated:
      return Allocated(call, first);
  }
  return std::nullopt;
}

// The pages of another process that are not zero.
std::vector<MemoryRange> PagesWithContent(const GuestMemory& memory,
                                          uint64_t begin, uint64_t end) {
  std::vector<MemoryRange> pages;
  PageContent content(memory);
  const auto regions = ListRegionsOf(memory.process(), 0, 0);
  for (const GuestRegion& region :
       regions.value_or(std::vector<GuestRegion>())) {
    const uint64_t region_end = region.addr + region.size_bytes;
    if (begin >= region_end || end <= region.addr) {
      continue;
    }
    GuestRegion part = region;
    part.size_bytes = std::min(end, region_end) - region.addr;
    const uint64_t from = std::max(begin, region.addr) - region.addr;
    for (uint64_t at = content.Next(part, from); at < part.size_bytes;
         at = content.Next(part, at + kPageBytes)) {
      pages.push_back({part.addr + at, kPageBytes});
    }
  }
  return pages;
}

// Those that can be read; behind the end of a file they cannot. Nobody waits
// for many.
std::vector<MemoryRange> ReadablePages(uint64_t addr, uint64_t pages,
                                       const GuestMemory& memory) {
  constexpr uint64_t kPagesMax = 1 << 14;
  std::vector<MemoryRange> ranges;
  if (pages > kPagesMax) {
    return ranges;
  }
  for (uint64_t page = addr; page != addr + pages * kPageBytes;
       page += kPageBytes) {
    if (memory.Load<uint8_t>(page)) {
      ranges.push_back({page, kPageBytes});
    }
  }
  return ranges;
}

bool MapsCodeOfFile(const SyscallCall& call, int64_t result) {
  return call.number == __NR_mmap && result >= 0 &&
         (call.args[3] & MAP_ANONYMOUS) == 0 && (call.args[2] & PROT_EXEC) != 0;
}

}  // namespace

std::optional<std::string> CodeFileOf(const SyscallCall& call, int64_t result,
                                      const GuestMemory& memory) {
  return MapsCodeOfFile(call, result)
             ? CodeFileOf(
                   call, result,
                   ProgramDescriptor(memory, static_cast<int>(call.args[4]))
                       .Path())
             : std::nullopt;
}

std::optional<std::string> CodeFileOf(const SyscallCall& call, int64_t result,
                                      const std::string& path) {
  if (!MapsCodeOfFile(call, result)) {
    return std::nullopt;
  }
  struct stat info = {};
  const bool is_file = path.starts_with('/') &&
                       stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? std::optional(path) : std::nullopt;
}

uint64_t SharedMemoryOf(const SyscallCall& call, int64_t result,
                        const GuestMemory& memory) {
  if (result < 0) {
    return 0;
  }
  if (call.number == __NR_shmat) {
    return SharedMemoryNumber(kMemoryDevice, call.args[0]);
  }
  const bool maps_file = call.number == __NR_mmap &&
                         (call.args[3] & MAP_SHARED) != 0 &&
                         (call.args[3] & MAP_ANONYMOUS) == 0;
  const auto info =
      maps_file ? ProgramDescriptor(memory, static_cast<int>(call.args[4]))
                      .StatOfRegularFile()
                : std::nullopt;
  return info ? SharedMemoryNumber(info->st_dev, info->st_ino) : 0;
}

ExecMapping CodeMappedBy(const SyscallCall& call, int64_t result,
                         const std::string& path) {
  return {.addr = static_cast<uint64_t>(result),
          .size_bytes = RoundUpToPage(call.args[1]),
          .file_offset = call.args[5],
          .prot = static_cast<uint32_t>(call.args[2]),
          .path = path};
}

std::optional<FileRange> ChangedFile(const SyscallCall& call, int64_t result,
                                     const GuestMemory& memory) {
  if (result < 0) {
    return std::nullopt;
  }
  auto range = WrittenRange(call, static_cast<uint64_t>(result), memory);
  const auto info =
      range ? ProgramDescriptor(memory, range->fd).StatOfRegularFile()
            : std::nullopt;
  if (!info) {
    return std::nullopt;
  }
  range->end =
      std::min(range->end, RoundUpToPage(static_cast<uint64_t>(info->st_size)));
  return range->begin < range->end ? range : std::nullopt;
}

std::optional<FileMappings::FileId> FileMappings::IdOf(
    const GuestMemory& memory, int fd) {
  const auto info = ProgramDescriptor(memory, fd).StatOfRegularFile();
  return info ? std::optional(
                    FileId{.device = info->st_dev, .inode = info->st_ino})
              : std::nullopt;
}

void FileMappings::Begin(std::span<const GuestRegion> regions) {
  for (const GuestRegion& region : regions) {
    struct stat info = {};
    if (region.name.starts_with('/') && stat(region.name.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode)) {
      mappings_.push_back(
          {.addr = region.addr,
           .size_bytes = region.size_bytes,
           .file_offset = region.file_offset,
           .file = {.device = info.st_dev, .inode = info.st_ino}});
    }
    if (region.shared) {
      NoteShared(region);
    }
  }
}

// How its file was opened is not known any more: what the process cannot write
// through the mapping counts as opened for reading.
void FileMappings::NoteShared(const GuestRegion& region) {
  struct stat info = {};
  const bool is_file =
      region.name.starts_with('/') && stat(region.name.c_str(), &info) == 0;
  if (!is_file) {
    maps_shared_memory_ = true;
    shares_with_children_ = true;  // it may have some
  } else if (OthersMayWrite(region.prot, O_RDONLY, info)) {
    written_by_others_.insert(region.name);
  }
}

void FileMappings::Follow(const SyscallCall& call, int64_t result,
                          const GuestMemory& memory) {
  const auto& args = call.args;
  const auto addr = static_cast<uint64_t>(result);
  if (result < 0) {
    return;
  }
  switch (call.number) {
    case __NR_mmap:
      return Map(addr, call, memory);
    case __NR_munmap:
      return Remove(args[0], RoundUpToPage(args[1]));
    case __NR_shmat:
      segments_.insert(static_cast<int>(args[0]));
      return;
    case __NR_mremap:
      return Move(args[0], RoundUpToPage(args[1]), addr,
                  RoundUpToPage(args[2]));
    default:
      shares_with_children_ |= maps_shared_memory_ && MakesProcess(call);
      return;
  }
}

void FileMappings::Map(uint64_t addr, const SyscallCall& call,
                       const GuestMemory& memory) {
  const auto& args = call.args;
  Remove(addr, RoundUpToPage(args[1]));
  const bool is_shared = (args[3] & MAP_SHARED) != 0;
  maps_shared_memory_ |= is_shared && (args[3] & MAP_ANONYMOUS) != 0;
  const int fd = static_cast<int>(args[4]);
  const auto file =
      (args[3] & MAP_ANONYMOUS) != 0 ? std::nullopt : IdOf(memory, fd);
  if (!file) {
    return;
  }
  mappings_.push_back({.addr = addr,
                       .size_bytes = RoundUpToPage(args[1]),
                       .file_offset = args[5],
                       .file = *file});
  if (is_shared) {  // MAP_SHARED_VALIDATE has the bit, too
    Note(memory, fd, args[2]);
  }
}

// Files that only their owner can be expected to change while they are mapped
// for reading (the caches of libc) are left out.
void FileMappings::Note(const GuestMemory& memory, int fd, uint64_t prot) {
  const ProgramDescriptor descriptor(memory, fd);
  struct stat info = {};
  info = descriptor.Stat().value_or(info);
  if (OthersMayWrite(prot, static_cast<uint64_t>(descriptor.Flags()), info)) {
    written_by_others_.insert(descriptor.Path());
  }
}

void FileMappings::Remove(uint64_t addr, uint64_t size_bytes) {
  const uint64_t end = addr + size_bytes;
  std::vector<Mapping> left;
  for (const Mapping& mapping : mappings_) {
    const uint64_t mapped_end = mapping.addr + mapping.size_bytes;
    if (mapped_end <= addr || end <= mapping.addr) {
      left.push_back(mapping);
      continue;
    }
    if (mapping.addr < addr) {
      left.push_back(mapping);
      left.back().size_bytes = addr - mapping.addr;
    }
    if (end < mapped_end) {
      left.push_back(mapping);
      left.back().addr = end;
      left.back().size_bytes = mapped_end - end;
      left.back().file_offset += end - mapping.addr;
    }
  }
  mappings_ = std::move(left);
}

// One mapping, as mremap(2) demands.
void FileMappings::Move(uint64_t from, uint64_t old_bytes, uint64_t to,
                        uint64_t new_bytes) {
  const auto found =
      std::ranges::find_if(mappings_, [from](const Mapping& mapping) {
        return mapping.addr <= from && from < mapping.addr + mapping.size_bytes;
      });
  const bool of_file = found != mappings_.end();
  Mapping moved = of_file ? *found : Mapping();
  moved.file_offset += from - moved.addr;
  moved.addr = to;
  moved.size_bytes = new_bytes;
  Remove(from, old_bytes);
  Remove(to, new_bytes);
  if (of_file) {
    mappings_.push_back(moved);
  }
}

bool FileMappings::IsMapped(uint64_t addr) const {
  return std::ranges::any_of(mappings_, [addr](const Mapping& mapping) {
    return mapping.addr <= addr && addr < mapping.addr + mapping.size_bytes;
  });
}

// What is not resident and of no file is zero; asking spares reading it.
std::vector<MemoryRange> FileMappings::NotDiscarded(
    const SyscallCall& call, const GuestMemory& memory) const {
  const uint64_t end = call.args[0] + RoundUpToPage(call.args[1]);
  if (memory.process() != 0) {
    return PagesWithContent(memory, call.args[0], end);
  }
  std::vector<MemoryRange> ranges;
  for (uint64_t page = call.args[0]; page < end; page += kPageBytes) {
    std::array<uint64_t, kPageBytes / sizeof(uint64_t)> words = {};
    unsigned char resident = 1;
    (void)mincore(reinterpret_cast<void*>(page), kPageBytes, &resident);
    const bool read = ((resident & 1) != 0 || IsMapped(page)) &&
                      memory.Read(page, words.data(), kPageBytes);
    if (read && std::ranges::any_of(words, [](uint64_t w) { return w != 0; })) {
      ranges.push_back({page, kPageBytes});
    }
  }
  return ranges;
}

std::vector<MemoryRange> FileMappings::Advised(
    const SyscallCall& call, int64_t result, const GuestMemory& memory) const {
  const auto advice = static_cast<uint32_t>(call.args[2]);
  if (advice == MADV_DONTNEED && result == 0) {
    return NotDiscarded(call, memory);
  }
  if ((advice != MADV_DONTNEED && advice != MADV_REMOVE) ||
      call.args[0] % kPageBytes != 0) {
    return {};
  }
  return ReadablePages(call.args[0], PagesIn(call.args[1]), memory);
}

std::vector<MemoryRange> FileMappings::Grown(const SyscallCall& call,
                                             int64_t result,
                                             const GuestMemory& memory) const {
  const uint64_t old_bytes = RoundUpToPage(call.args[1]);
  const uint64_t new_bytes = RoundUpToPage(call.args[2]);
  if (result < 0 || new_bytes <= old_bytes || !IsMapped(call.args[0])) {
    return {};
  }
  return ReadablePages(static_cast<uint64_t>(result) + old_bytes,
                       (new_bytes - old_bytes) / kPageBytes, memory);
}

std::vector<MemoryRange> FileMappings::ChangedBy(
    const SyscallCall& call, int64_t result, const GuestMemory& memory) const {
  if (call.number == __NR_madvise) {
    return Advised(call, result, memory);
  }
  if (call.number == __NR_mremap) {
    return Grown(call, result, memory);
  }
  std::vector<MemoryRange> ranges;
  const auto changed =
      mappings_.empty() ? std::nullopt : ChangedFile(call, result, memory);
  const auto file = changed ? IdOf(memory, changed->fd) : std::nullopt;
  for (const Mapping& mapping : mappings_) {
    if (!file || mapping.file != *file) {
      continue;
    }
    const uint64_t begin = std::max(changed->begin, mapping.file_offset);
    const uint64_t end =
        std::min(changed->end, mapping.file_offset + mapping.size_bytes);
    if (begin < end) {
      ranges.push_back(
          {mapping.addr + (begin - mapping.file_offset), end - begin});
    }
  }
  return ranges;
}

std::string PhraseOfSharedFile(const std::string& path) {
  return fmt::format("{:?} is mapped shared, and another process may write it",
                     path);
}

std::vector<std::string> FileMappings::Unlogged() const {
  std::vector<std::string> phrases;
  phrases.reserve(written_by_others_.size() + 1);
  for (const std::string& path : written_by_others_) {
    phrases.push_back(PhraseOfSharedFile(path));
  }
  for (const int segment : segments_) {
    phrases.push_back(fmt::format(
        "shared memory segment {} is attached, and other processes may write "
        "it",
        segment));
  }
  if (shares_with_children_) {
    phrases.emplace_back(
        "memory is shared with child processes, which may write it");
  }
  return phrases;
}

}  // namespace clew::recorder
