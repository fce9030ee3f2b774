#include "recorder/qemu/guest_memory.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/inputs.h"
#include "common/linux/shared_memory.h"
#include "common/os/maps_path.h"
#include "recorder/qemu/calls/own_descriptor.h"

namespace clew::recorder {
namespace {

struct KernelMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  std::string name;
  uint32_t prot = 0;  // kProt...
  bool shared = false;
  uint64_t device = 0;  // as in stat::st_dev
  uint64_t inode = 0;   // 0: of no file
};

uint32_t ProtOf(const std::array<char, 4>& rights) {
  return (rights[0] == 'r' ? kProtRead : 0) |
         (rights[1] == 'w' ? kProtWrite : 0) |
         (rights[2] == 'x' ? kProtExec : 0);
}

// A line of /proc/pid/maps: "begin-end prot offset device inode   name".
std::optional<KernelMapping> ParseMapsLine(const char* line) {
  KernelMapping mapping;
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long offset = 0;
  unsigned long inode = 0;
  unsigned int major = 0;
  unsigned int minor = 0;
  int name_at = 0;
  std::array<char, 4> rights = {};
  if (sscanf(line, "%lx-%lx %4c %lx %x:%x %lu %n", &begin, &end, rights.data(),
             &offset, &major, &minor, &inode, &name_at) < 7) {
    return std::nullopt;
  }
  mapping.prot = ProtOf(rights);
  mapping.shared = rights[3] == 's';
  mapping.begin = begin;
  mapping.end = end;
  mapping.file_offset = offset;
  mapping.device = gnu_dev_makedev(major, minor);
  mapping.inode = inode;
  mapping.name = line + name_at;
  while (!mapping.name.empty() && mapping.name.back() == '\n') {
    mapping.name.pop_back();
  }
  mapping.name = PathOfMapping(mapping.name, inode);
  return mapping;
}

Result<std::vector<KernelMapping>> ReadKernelMappings(const std::string& path,
                                                      uint64_t end) {
  FILE* maps = fopen(path.c_str(), "re");
  if (maps == nullptr) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  std::vector<KernelMapping> mappings;
  std::array<char, 4600> line;
  while (fgets(line.data(), static_cast<int>(line.size()), maps) != nullptr) {
    auto mapping = ParseMapsLine(line.data());
    if (mapping.has_value() && mapping->begin < end) {
      mappings.push_back(std::move(*mapping));
    }
  }
  (void)fclose(maps);  // read only
  return mappings;
}

// As proc_pid_maps(5) shows memory that no file and no driver backs.
bool IsAnonymous(const std::string& name) {
  return name.empty() || name == "[heap]" || name.starts_with("[stack") ||
         name.starts_with("[anon:");
}

// Of a process, 0: this one. Not what /proc/pid/maps says: that is of the first
// thread, which has no memory any more once it has ended.
Result<std::vector<KernelMapping>> ReadMappingsOf(int32_t process,
                                                  uint64_t end) {
  if (process == 0) {
    return ReadKernelMappings("/proc/thread-self/maps", end);
  }
  const std::string threads = fmt::format("/proc/{}/task", process);
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(threads, error)) {
    auto mappings = ReadKernelMappings(thread.path() / "maps", end);
    if (mappings && !mappings->empty()) {
      return mappings;
    }
  }
  return Unsupported("no thread in {:?} has memory", threads);
}

std::string NameOf(const KernelMapping& mapping, uint64_t stack_addr,
                   uint64_t brk) {
  if (!mapping.name.empty() && mapping.name[0] == '/') {
    return mapping.name;
  }
  if (mapping.begin <= stack_addr && stack_addr < mapping.end) {
    return "[stack]";
  }
  return mapping.end == brk ? "[heap]" : "";
}

void SplitByProtection(const KernelMapping& mapping, const std::string& name,
                       const PageProtection& protection,
                       std::vector<GuestRegion>& regions) {
  const bool is_file = !name.empty() && name[0] == '/';
  bool open = false;
  for (uint64_t addr = mapping.begin; addr < mapping.end; addr += kPageBytes) {
    const std::optional<uint32_t> prot = protection(addr);
    if (!prot.has_value()) {
      open = false;
      continue;
    }
    if (!open || regions.back().prot != *prot) {
      regions.push_back(
          {.addr = addr,
           .prot = *prot,
           .file_offset =
               is_file ? mapping.file_offset + (addr - mapping.begin) : 0,
           .name = name});
      open = true;
    }
    regions.back().size_bytes += kPageBytes;
  }
}

// What a program cannot write, and the kernel shows no other process.
bool IsKernels(const std::string& name) {
  return name.starts_with("[vvar") || name == "[vsyscall]";
}

}  // namespace

Result<GuestMemory> GuestMemory::OpenOf(int32_t process) {
  const std::string path = fmt::format("/proc/{}/mem", process);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  GuestMemory memory(TakeDescriptor(fd), true, nullptr);
  memory.process_ = process;
  return memory;
}

Result<GuestMemory> GuestMemory::Open(PageProtection high) {
  int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  const bool can_write = fd >= 0;
  if (!can_write) {
    fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0) {
    return SystemError(errno, "cannot open \"/proc/self/mem\"");
  }
  return GuestMemory(TakeDescriptor(fd), can_write, std::move(high));
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      can_write_(other.can_write_),
      high_(std::move(other.high_)),
      process_(other.process_) {}

bool GuestMemory::IsPrograms(uint64_t addr, uint64_t count) const {
  if (process_ != 0 || (addr < kGuestEnd && count <= kGuestEnd - addr)) {
    return true;
  }
  if (!high_ || count > UINT64_MAX - addr) {
    return false;
  }
  for (uint64_t page = addr / kPageBytes * kPageBytes; page < addr + count;
       page += kPageBytes) {
    if (!high_(page)) {
      return false;
    }
  }
  return true;
}

bool GuestMemory::Write(uint64_t addr, const void* from, size_t count) const {
  if (!IsPrograms(addr, count)) {
    return false;
  }
  return pwrite(fd_, from, count, static_cast<off_t>(addr)) ==
         static_cast<ssize_t>(count);
}

GuestMemory::~GuestMemory() {
  if (fd_ >= 0) {
    CloseOwnDescriptor(fd_);
  }
}

bool GuestMemory::Read(uint64_t addr, void* to, size_t count) const {
  if (!IsPrograms(addr, count)) {
    return false;
  }
  auto* out = static_cast<char*>(to);
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(fd_, out + done, count - done, static_cast<off_t>(addr + done));
    if (got <= 0) {
      return false;
    }
    done += static_cast<size_t>(got);
  }
  return true;
}

std::string GuestMemory::Text(uint64_t addr, size_t max_bytes) const {
  std::string text;
  while (text.size() < max_bytes) {
    const auto c = Load<char>(addr + text.size());
    if (!c.has_value() || *c == 0) {
      break;
    }
    text.push_back(*c);
  }
  return text;
}

uint64_t GuestMemory::CopyTo(RawFile& file, uint64_t addr,
                             uint64_t count) const {
  std::array<std::byte, kPageBytes> page;
  uint64_t unreadable = 0;
  while (count > 0) {
    const uint64_t step = std::min(count, kPageBytes - addr % kPageBytes);
    const auto size = static_cast<size_t>(step);
    if (Read(addr, page.data(), size)) {
      file.Append(std::span(page).first(size));
    } else {
      file.AppendZeros(step);
      unreadable += step;
    }
    addr += step;
    count -= step;
  }
  return unreadable;
}

Result<std::vector<GuestRegion>> ListRegions(const PageProtection& protection,
                                             uint64_t stack_addr, uint64_t brk,
                                             uint64_t end) {
  CLEW_ASSIGN_OR_RETURN(mappings, ReadMappingsOf(0, end));
  std::vector<GuestRegion> regions;
  for (const KernelMapping& mapping : mappings) {
    SplitByProtection(mapping, NameOf(mapping, stack_addr, brk), protection,
                      regions);
  }
  return regions;
}

Result<std::vector<GuestRegion>> ListRegionsOf(int32_t process,
                                               uint64_t stack_addr,
                                               uint64_t brk) {
  CLEW_ASSIGN_OR_RETURN(mappings, ReadMappingsOf(process, UINT64_MAX));
  std::vector<GuestRegion> regions;
  for (const KernelMapping& mapping : mappings) {
    if (!IsKernels(mapping.name)) {
      const std::string name = NameOf(mapping, stack_addr, brk);
      regions.push_back(
          {.addr = mapping.begin,
           .size_bytes = mapping.end - mapping.begin,
           .prot = mapping.prot,
           .file_offset = name.starts_with('/') ? mapping.file_offset : 0,
           .name = name,
           .shared = mapping.shared,
           .was_zero = !mapping.shared && IsAnonymous(mapping.name),
           .shared_memory =
               mapping.shared && mapping.inode != 0
                   ? SharedMemoryNumber(mapping.device, mapping.inode)
                   : 0});
    }
  }
  return regions;
}

bool IsSharedMapping(uint64_t addr, int32_t process) {
  const auto mappings = ReadMappingsOf(process, UINT64_MAX);
  return mappings && std::ranges::any_of(*mappings, [&](const auto& mapping) {
           return mapping.shared && mapping.begin <= addr && addr < mapping.end;
         });
}

}  // namespace clew::recorder
