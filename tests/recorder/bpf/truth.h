#ifndef CLEW_TESTS_RECORDER_BPF_TRUTH_H_
#define CLEW_TESTS_RECORDER_BPF_TRUTH_H_

/* What tracee.c writes of each of its calls: this, and the bytes of its arena
 * before and after the call. */

#include <stdint.h>

#define TRUTH_ARENA_BYTES 32768
/* Writes to this descriptor are the truth being told, and no calls of it. */
#define TRUTH_FD_FIRST 500

struct TruthCall {
  uint64_t arena;
  uint64_t thread;
  uint64_t number;
  uint64_t args[6];
  int64_t result;
  uint64_t tsc_before;
  uint64_t tsc_after;
};

#endif  // CLEW_TESTS_RECORDER_BPF_TRUTH_H_
