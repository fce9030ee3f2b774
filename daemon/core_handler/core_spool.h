#ifndef CLEW_DAEMON_CORE_HANDLER_CORE_SPOOL_H_
#define CLEW_DAEMON_CORE_HANDLER_CORE_SPOOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core_handler/core_memory.h"
#include "daemon/core_handler/core_next.h"

// Part of clew-core-handler: the core dump's file in clewd's spool. A child
// writes it, so that a slow disk there holds up nothing else. C, and part of no
// library.

enum { kAnswerMs = 2000 };

struct CoreSpool {
  int socket;  // -1: clewd wants none
  int file;    // -1: the same
  uint64_t bytes_max;
  int stall_ms;      // as the dump has it
  int pipe;          // to the child, what it writes; or from it, that it lives
  pid_t process;     // the child
  bool cut;          // the child failed, or was left behind
  bool ended_early;  // the dump itself
};

// Asks clewd, which answers within `dump->answer_ms` or has no copy.
struct CoreSpool AskDaemon(const struct Dump* dump);

// Starts a child that writes what Keep passes to it.
void StartKeeping(struct CoreSpool* spool);
void Keep(struct CoreSpool* spool, const char* bytes, size_t size);

// Starts a child that takes the dump from the process's memory.
void StartCopyingMemory(struct CoreSpool* spool, const struct Dump* dump,
                        const struct DumpHead* head);
// Waits for the child as long as it makes progress. Returns kDumpWhole also if
// there is no child.
enum DumpEnd WaitForCopy(struct CoreSpool* spool);
// Empties the file, so that StartKeeping may be called.
void BeginAgain(struct CoreSpool* spool);

// Tells clewd how it ended, with the length of the dump.
void FinishSpool(struct CoreSpool* spool, uint64_t bytes);

#endif  // CLEW_DAEMON_CORE_HANDLER_CORE_SPOOL_H_
