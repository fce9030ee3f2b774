#define _GNU_SOURCE
#include "daemon/core_handler/core_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/x86/page.h"
#include "daemon/core_handler/core_devices.h"

enum {
  kPageBytes = CLEW_PAGE_BYTES,
  kBlockBytes = 65536,
  kEntriesAtOnce = 65536,  // of pagemap: 256 MiB of memory
};

// Ten thousand threads with AMX have some 120 MB of notes.
static const uint64_t kHeadBytesMax = UINT64_C(512) << 20;

// proc_pid_pagemap(5).
static const uint64_t kPresent = UINT64_C(1) << 63;
static const uint64_t kSwapped = UINT64_C(1) << 62;

// A line of /proc/PID/maps.
struct Mapping {
  uint64_t begin;
  uint64_t end;
  bool readable;
  // Pages that are not in the page table are zeros, and the kernel leaves them
  // out; of a file, of shared memory and of the vDSO it brings them in.
  bool anonymous;
  bool of_file;  // also shared memory and huge pages, which are files inside
  uint64_t device;
};

// Reads until there are `size` bytes of the dump.
static bool ReadUpTo(int pipe, struct DumpHead* head, uint64_t size) {
  if (size <= head->size) {
    return true;
  }
  char* const bytes =
      size > kHeadBytesMax ? NULL : realloc(head->bytes, (size_t)size);
  if (bytes == NULL) {
    return false;
  }
  head->bytes = bytes;
  while (head->size < size) {
    const ssize_t count =
        read(pipe, bytes + head->size, (size_t)size - head->size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    head->size += (size_t)count;
  }
  return true;
}

static Elf64_Phdr HeaderAt(const struct DumpHead* head, uint32_t index) {
  Elf64_Phdr header;
  memcpy(&header, head->bytes + sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr),
         sizeof(header));
  return header;
}

static bool IsWholePages(uint64_t value) { return value % kPageBytes == 0; }

// Whether the ranges of memory follow one another in the file, behind all else.
static bool TakeLayout(struct DumpHead* head) {
  uint64_t at = 0;
  uint64_t others_end = 0;
  for (uint32_t i = 0; i < head->loads; ++i) {
    const Elf64_Phdr header = HeaderAt(head, i);
    if (header.p_filesz > INT64_MAX / 2 || header.p_offset > INT64_MAX / 2) {
      return false;
    }
    if (header.p_type != PT_LOAD) {
      const uint64_t end = header.p_offset + header.p_filesz;
      others_end = end > others_end ? end : others_end;
      continue;
    }
    if (at == 0) {
      at = head->memory_at = header.p_offset;
    }
    if (header.p_offset != at || !IsWholePages(at) ||
        !IsWholePages(header.p_vaddr) || !IsWholePages(header.p_filesz) ||
        header.p_vaddr + header.p_filesz < header.p_vaddr) {
      return false;
    }
    at += header.p_filesz;
    if (at > INT64_MAX / 2) {
      return false;
    }
  }
  if (at == head->memory_at || others_end > head->memory_at) {
    return false;
  }
  head->dump_bytes = at;
  return true;
}

static bool IsTaken(const Elf64_Ehdr* header) {
  return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 &&
         header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_type == ET_CORE &&
         header->e_phoff == sizeof(Elf64_Ehdr) &&
         header->e_phentsize == sizeof(Elf64_Phdr) &&
         header->e_phnum != PN_XNUM && header->e_shoff == 0;
}

bool ReadDumpHead(int pipe, struct DumpHead* head) {
  Elf64_Ehdr header;
  *head = (struct DumpHead){.bytes = NULL};
  if (!ReadUpTo(pipe, head, sizeof(header))) {
    return false;
  }
  memcpy(&header, head->bytes, sizeof(header));
  if (!IsTaken(&header)) {
    return false;
  }
  head->loads = header.e_phnum;
  head->dump_bytes = sizeof(header) + head->loads * sizeof(Elf64_Phdr);
  return ReadUpTo(pipe, head, head->dump_bytes) && TakeLayout(head) &&
         ReadUpTo(pipe, head, head->memory_at + kPageBytes);
}

// Of the thread that dumps: the first one may have exited, and then has no
// memory any more.
static int OpenOf(const struct Dump* dump, const char* name) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%s/%s", ValueOf(dump, 'I'), name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

// "[heap]", "[stack]" and "[anon:...]" are memory as any other. A segment of
// shmget may have the inode 0, but has a path.
static bool IsAnonymous(const char* line, unsigned long inode) {
  const char* const name = strchr(line, '[');
  return inode == 0 && strchr(line, '/') == NULL &&
         (name == NULL || strncmp(name, "[heap]", 6) == 0 ||
          strncmp(name, "[stack", 6) == 0 || strncmp(name, "[anon", 5) == 0);
}

static bool AddMapping(struct DumpMemory* memory, const char* line) {
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long inode = 0;
  unsigned int major = 0;
  unsigned int minor = 0;
  char read_bit = '-';
  if (sscanf(line, "%lx-%lx %c%*3c %*x %x:%x %lu", &begin, &end, &read_bit,
             &major, &minor, &inode) != 6) {
    return false;
  }
  if ((memory->count & (memory->count - 1)) == 0) {  // full: 1, 2, 4, 8...
    const size_t room = memory->count == 0 ? 1 : 2 * memory->count;
    struct Mapping* const mappings =
        realloc(memory->mappings, room * sizeof(struct Mapping));
    if (mappings == NULL) {
      return false;
    }
    memory->mappings = mappings;
  }
  memory->mappings[memory->count++] =
      (struct Mapping){.begin = begin,
                       .end = end,
                       .readable = read_bit == 'r',
                       .anonymous = IsAnonymous(line, inode),
                       .of_file = inode != 0 || strchr(line, '/') != NULL,
                       .device = makedev(major, minor)};
  return true;
}

static bool ReadMappings(const struct Dump* dump, struct DumpMemory* memory) {
  const int fd = OpenOf(dump, "maps");
  FILE* const file = fd < 0 ? NULL : fdopen(fd, "r");
  if (file == NULL) {
    return false;
  }
  char* line = NULL;
  size_t room = 0;
  bool good = true;
  while (good && getline(&line, &room, file) > 0) {
    good = AddMapping(memory, line);
  }
  free(line);
  fclose(file);
  return good && memory->count > 0;
}

// Reads at most `size` bytes; 0 if the memory is gone, as of a killed process.
// Not pread, which takes no address of the upper half.
static ssize_t ReadMemory(const struct DumpMemory* memory, uint64_t addr,
                          char* bytes, size_t size) {
  if (lseek(memory->mem, (off_t)addr, SEEK_SET) != (off_t)addr) {
    return -1;
  }
  ssize_t count = 0;
  do {
    count = read(memory->mem, bytes, size);
  } while (count < 0 && errno == EINTR);
  return count;
}

static bool IsAlive(const struct DumpMemory* memory) {
  struct pollfd end = {.fd = memory->process_fd, .events = POLLIN};
  return poll(&end, 1, 0) == 0;
}

// The same for pages of a file. One that is not in memory may be a stranger's
// to give, by FUSE, and he may never do so: reading mem cannot be killed while
// it waits for that, process_vm_readv can (mm/gup.c, FAULT_FLAG_KILLABLE). It
// obeys the mapping's protection, and names the process by a number, which was
// not another process's meanwhile if that process is alive afterwards.
static ssize_t ReadFilePages(const struct DumpMemory* memory, uint64_t addr,
                             char* bytes, size_t size) {
  const struct iovec to = {.iov_base = bytes, .iov_len = size};
  const struct iovec from = {.iov_base = (void*)(uintptr_t)addr,
                             .iov_len = size};
  const ssize_t count = process_vm_readv(memory->process, &to, 1, &from, 1, 0);
  const bool is_hole = count < 0 && errno == EFAULT;
  return IsAlive(memory) && (count > 0 || is_hole) ? count : 0;
}

// The last answer is kept: most files of a process are on one device.
static bool IsAnswered(struct DumpMemory* memory, uint64_t device) {
  if (!memory->has_device || memory->device != device) {
    memory->has_device = true;
    memory->device = device;
    memory->is_answered = IsAnsweredByKernel(device);
  }
  return memory->is_answered;
}

// 0: it cannot be had. Less than 0: not this page.
static ssize_t ReadMapping(struct DumpMemory* memory,
                           const struct Mapping* mapping, uint64_t addr,
                           char* bytes, size_t size) {
  if (!mapping->of_file) {
    return ReadMemory(memory, addr, bytes, size);
  }
  return mapping->readable && IsAnswered(memory, mapping->device)
             ? ReadFilePages(memory, addr, bytes, size)
             : 0;
}

// The mapping at the address, or the next one behind it; NULL: there is none.
// Asked with growing addresses.
static const struct Mapping* FindMapping(struct DumpMemory* memory,
                                         uint64_t addr) {
  while (memory->last < memory->count &&
         memory->mappings[memory->last].end <= addr) {
    ++memory->last;
  }
  return memory->last < memory->count ? &memory->mappings[memory->last] : NULL;
}

// Whether the kernel still stands in the pipe. As it did after the files of
// /proc were opened, they are of the process that dies: its number is not given
// to another before that.
static bool WriterWaits(int pipe) {
  struct pollfd wait = {.fd = pipe, .events = POLLIN};
  return poll(&wait, 1, 0) >= 0 && (wait.revents & (POLLHUP | POLLERR)) == 0;
}

// The page that the pipe has given, too.
static bool FirstPageAgrees(const struct DumpHead* head,
                            struct DumpMemory* memory) {
  uint32_t first = 0;
  while (HeaderAt(head, first).p_type != PT_LOAD ||
         HeaderAt(head, first).p_filesz == 0) {
    ++first;
  }
  char page[kPageBytes] = {0};
  const uint64_t addr = HeaderAt(head, first).p_vaddr;
  const struct Mapping* const mapping = FindMapping(memory, addr);
  return mapping != NULL && mapping->begin <= addr &&
         ReadMapping(memory, mapping, addr, page, sizeof(page)) != 0 &&
         memcmp(page, head->bytes + head->memory_at, sizeof(page)) == 0;
}

bool OpenDumpMemory(const struct Dump* dump, int pipe,
                    const struct DumpHead* head, struct DumpMemory* memory) {
  const pid_t process = (pid_t)atol(ValueOf(dump, 'P'));
  *memory = (struct DumpMemory){.process = process,
                                .process_fd = pidfd_open(process, 0),
                                .mem = OpenOf(dump, "mem"),
                                .pagemap = OpenOf(dump, "pagemap")};
  return memory->process_fd >= 0 && memory->mem >= 0 && memory->pagemap >= 0 &&
         ReadMappings(dump, memory) && WriterWaits(pipe) &&
         FirstPageAgrees(head, memory);
}

// A range that may have pages which cannot be read: behind the end of a file,
// guard pages, broken memory. The kernel leaves those out. `certain`: there is
// none such.
static enum DumpEnd CopyPages(struct DumpMemory* memory,
                              const struct Mapping* mapping, uint64_t addr,
                              uint64_t size, bool certain,
                              struct DumpSink sink) {
  static char bytes[kBlockBytes];
  while (size > 0) {
    const size_t part = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
    const ssize_t count = ReadMapping(memory, mapping, addr, bytes, part);
    if (count == 0 || (count < 0 && certain)) {
      return kDumpUnreadable;
    }
    const uint64_t step = count < 0 ? kPageBytes : (uint64_t)count;
    if (!(count < 0 ? sink.skip(sink.to, step)
                    : sink.put(sink.to, bytes, (size_t)count))) {
      return kDumpRefused;
    }
    addr += step;
    size -= step;
  }
  return kDumpWhole;
}

// What to do with a page of anonymous memory.
enum Page { kAbsent, kThere, kElsewhere };

static enum Page PageOf(uint64_t entry) {
  return (entry & kPresent) != 0   ? kThere
         : (entry & kSwapped) != 0 ? kElsewhere  // guard pages, too
                                   : kAbsent;
}

// Pages of one kind at once.
static enum DumpEnd CopyRun(struct DumpMemory* memory,
                            const struct Mapping* mapping, enum Page page,
                            uint64_t addr, uint64_t size,
                            struct DumpSink sink) {
  if (page == kAbsent) {
    return sink.skip(sink.to, size) ? kDumpWhole : kDumpRefused;
  }
  // Where reading is forbidden it takes FOLL_FORCE, which a kernel may refuse
  // (proc_mem.force_override): then the pipe alone has the page.
  const bool certain = page == kThere || !mapping->readable;
  return CopyPages(memory, mapping, addr, size, certain, sink);
}

static enum DumpEnd CopyAnonymous(struct DumpMemory* memory,
                                  const struct Mapping* mapping, uint64_t addr,
                                  uint64_t size, struct DumpSink sink) {
  static uint64_t entries[kEntriesAtOnce];
  while (size > 0) {
    const uint64_t pages = size / kPageBytes;
    const size_t wanted =
        (pages < kEntriesAtOnce ? (size_t)pages : kEntriesAtOnce) *
        sizeof(entries[0]);
    const ssize_t got = pread(memory->pagemap, entries, wanted,
                              (off_t)(addr / kPageBytes * sizeof(entries[0])));
    const size_t count = got < 0 ? 0 : (size_t)got / sizeof(entries[0]);
    if (count == 0) {
      return kDumpUnreadable;
    }
    for (size_t i = 0; i < count;) {
      const size_t begin = i;
      const enum Page page = PageOf(entries[begin]);
      while (i < count && PageOf(entries[i]) == page) {
        ++i;
      }
      const enum DumpEnd end =
          CopyRun(memory, mapping, page, addr + begin * kPageBytes,
                  (i - begin) * kPageBytes, sink);
      if (end != kDumpWhole) {
        return end;
      }
    }
    addr += count * kPageBytes;
    size -= count * kPageBytes;
  }
  return kDumpWhole;
}

// One program header's memory: mostly one mapping.
static enum DumpEnd CopyLoad(struct DumpMemory* memory, uint64_t addr,
                             uint64_t size, struct DumpSink sink) {
  while (size > 0) {
    const struct Mapping* const mapping = FindMapping(memory, addr);
    if (mapping == NULL || mapping->begin > addr) {
      return kDumpUnreadable;
    }
    const uint64_t room = mapping->end - addr;
    const uint64_t part = size < room ? size : room;
    const enum DumpEnd end =
        mapping->anonymous
            ? CopyAnonymous(memory, mapping, addr, part, sink)
            : CopyPages(memory, mapping, addr, part, false, sink);
    if (end != kDumpWhole) {
      return end;
    }
    addr += part;
    size -= part;
  }
  return kDumpWhole;
}

enum DumpEnd CopyDump(const struct DumpHead* head, struct DumpMemory* memory,
                      struct DumpSink sink) {
  enum DumpEnd end = sink.put(sink.to, head->bytes, (size_t)head->memory_at)
                         ? kDumpWhole
                         : kDumpRefused;
  for (uint32_t i = 0; i < head->loads && end == kDumpWhole; ++i) {
    const Elf64_Phdr header = HeaderAt(head, i);
    if (header.p_type == PT_LOAD) {
      end = CopyLoad(memory, header.p_vaddr, header.p_filesz, sink);
    }
  }
  return end;
}
