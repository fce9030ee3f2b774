#ifndef CLEW_DAEMON_CORE_HANDLER_CORE_MEMORY_H_
#define CLEW_DAEMON_CORE_HANDLER_CORE_MEMORY_H_

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core_handler/core_next.h"

// Part of clew-core-handler: a core dump whose memory comes from the dying
// process itself. C, and part of no library.
//
// The kernel sends a dump through the pipe in the order of an ELF file, and for
// memory that was never touched it sends zeros, a page at a time
// (fs/coredump.c, __dump_skip): 4 GiB of nothing are 4 GiB through the pipe.
// But it sends the head first, and then stands in the pipe until somebody
// reads:
//
//     pipe       ELF header | program headers | notes | pad | memory ...
//     read       <------------- the head ---------------->|p|  and no more
//     /proc/PID/mem                                        <-- by p_vaddr -->
//     /proc/PID/pagemap                                    <-- holes -------->
//
// Meanwhile the process has all its memory, and none of its threads runs. So
// the head says which ranges belong into the dump (its coredump_filter is the
// kernel's business), pagemap says which pages there are, mem has the bytes.
//
// Invariant: what a sink gets is, byte for byte, what the pipe would have
// given. If that is not possible, because the kernel, the process or the head
// is other than expected, the answer is false or kDumpUnreadable, and the pipe
// still has everything after `head.bytes`.
//
// Worked example: 4 GiB of anonymous memory with eight pages touched. The head
// is 8 KiB, pagemap 8 MiB in 16 reads, mem eight reads; the file gets eight
// pages and a length.

// What comes before the memory, and the memory's first page.
struct DumpHead {
  char* bytes;
  size_t size;          // bytes read from the pipe, whatever they are
  uint64_t memory_at;   // offset in the dump; a multiple of the page size
  uint64_t dump_bytes;  // all of it, or what is known to belong to it
  uint32_t loads;       // program headers
};

// Where a dump goes. Either call returns false to end it.
struct DumpSink {
  bool (*put)(void* to, const char* bytes, size_t size);
  bool (*skip)(void* to, uint64_t size);  // zeros, for pages that are not there
  void* to;
};

enum DumpEnd {
  kDumpWhole,
  kDumpRefused,     // the sink ended it
  kDumpUnreadable,  // memory that is there cannot be read
};

// Reads from the pipe up to the first page of memory. Returns false if this
// handler cannot take the head to pieces: it is of a 32-bit process or of one
// with 65,535 mappings or more (PN_XNUM), has no memory, or is not as
// fs/binfmt_elf.c writes it. `head->bytes` has what was read in any case; the
// caller frees it.
bool ReadDumpHead(int pipe, struct DumpHead* head);

// The process's memory. Reading it may take as long as a stranger wants
// (core_watch.h), and ends by SIGKILL. After a fork it is to be opened again:
// the files have one position.
struct DumpMemory {
  pid_t process;
  int process_fd;  // says whether `process` is still that one
  int mem;
  int pagemap;
  struct Mapping* mappings;  // by address
  size_t count;
  size_t last;  // where the last one was found
  bool has_device;
  uint64_t device;   // the last one asked for: whether its pages come by
  bool is_answered;  // themselves
};

// Returns false if it is not that of the process that writes to the pipe, or
// cannot be had. What it opens and allocates goes when the caller ends: to be
// called once, in a child made for it (core_watch.h).
bool OpenDumpMemory(const struct Dump* dump, int pipe,
                    const struct DumpHead* head, struct DumpMemory* memory);

// Puts the whole dump into the sink. To be called once.
enum DumpEnd CopyDump(const struct DumpHead* head, struct DumpMemory* memory,
                      struct DumpSink sink);

#endif  // CLEW_DAEMON_CORE_HANDLER_CORE_MEMORY_H_
