#ifndef CLEW_TESTS_FIDELITY_PROGRAMS_CHECK_H_
#define CLEW_TESTS_FIDELITY_PROGRAMS_CHECK_H_

// What the programs of this folder share: each checks one feature of the kernel
// or the CPU and ends with Ok() where all went as the manual says.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Ends the program with status 1, and with what differed, unless `condition`
// holds. In a child process, too.
#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      dprintf(1, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      _exit(1);                                                            \
    }                                                                      \
  } while (0)

// The same of a call that has to fail with this error.
#define CHECK_FAILS(call, error)             \
  do {                                       \
    errno = 0;                               \
    CHECK((call) == -1 && errno == (error)); \
  } while (0)

// The one line of success.
static inline int Ok(void) {
  dprintf(1, "ok\n");
  return 0;
}

#endif  // CLEW_TESTS_FIDELITY_PROGRAMS_CHECK_H_
