#ifndef CLEW_DAEMON_CORE_HANDLER_CORE_NEXT_H_
#define CLEW_DAEMON_CORE_HANDLER_CORE_NEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Part of clew-core-handler: where core dumps went before, and where it passes
// them on to. C, and part of no library.

// The handler's arguments, in the order of the pattern:
// %P %p %I %i %u %g %d %s %t %c %h %e.
#define CORE_SPECIFIERS "PpIiugdstche"
enum { kCoreSpecifierCount = sizeof(CORE_SPECIFIERS) - 1 };

struct Dump {
  char* value[kCoreSpecifierCount];
  const char* root;  // what all paths of clew begin with; for tests
  int answer_ms;     // clewd has so long to answer
  int stall_ms;      // children may stand still so long
};

// Returns NULL for a specifier that the handler does not have.
const char* ValueOf(const struct Dump* dump, char specifier);
// Prints `what` and errno's text.
void Complain(const char* what);
bool WriteAll(int fd, const char* bytes, size_t size);
bool IsZero(const char* bytes, size_t size);

struct Next {
  int fd;            // -1: nowhere
  pid_t process;     // of a handler; 0: a file
  uint64_t limit;    // of a file's bytes that are not in holes
  uint64_t written;  // of those, so far
  uint64_t size;     // holes included
};

// Opens what /var/lib/clew/core_pattern.before names. Returns one that leads
// nowhere if it cannot.
struct Next OpenNext(const struct Dump* dump);
// Passes the next bytes on. In a file, blocks of zeros become holes, as the
// kernel's dumps have them for memory that was never touched.
void PassOn(struct Next* next, const char* bytes, size_t size);
// Moves bytes from a pipe to a handler. Returns how many; 0 at the end, and if
// the handler reads no more. REQUIRES: `next` is a handler.
ssize_t MoveOn(struct Next* next, int from);
// Passes `size` zeros on. REQUIRES: `next` is not a handler.
void PassHole(struct Next* next, uint64_t size);
// Empties the file. REQUIRES: `next` is not a handler.
void Rewind(struct Next* next);
// Ends the core dump; the handler may end while others still write. Returns
// false if what was passed on is not whole.
bool CloseNext(struct Next* next);
// Returns the exit status: a handler's own if there is one.
int WaitForNext(const struct Next* next, bool whole);

#endif  // CLEW_DAEMON_CORE_HANDLER_CORE_NEXT_H_
