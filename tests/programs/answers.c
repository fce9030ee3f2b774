// One thread without a timer that answers each line of its standard input by
// what came of it and of the time, and whether the code that the kernel gave to
// the program is still as it was in the beginning, until the input ends. It is
// nearly always in the middle of something: it computes with the FPU, vectors
// and text, allocates, and reads the time. Before it answers "s" it waits for a
// tenth of a second.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel_code.h"

static double state = 1;
static long double extended = 1;
static float table[64];

static unsigned long turn(unsigned long number) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  state = state * 0.7 + (double)now.tv_nsec;
  extended = extended * 0.75L + (long double)state;
  for (int i = 0; i < 64; ++i) {
    table[i] = table[i] * 0.5f + (float)state;
  }
  char* const text = malloc(64 + number % 400);
  const int size = snprintf(text, 64, "%lu %.17g %.20Lg %g", number, state,
                            extended, (double)table[number % 64]);
  char* const copy = strdup(text);
  const unsigned long sum = strlen(copy) + (unsigned char)copy[size / 2] +
                            (strstr(text, "77") != NULL);
  free(text);
  free(copy);
  return sum;
}

int main(void) {
  const unsigned long kernel_code = sum_of_kernel_code();
  unsigned long sum = 0;
  char line[2];
  while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
    if (line[0] == 's') {
      const struct timespec tenth = {0, 100 * 1000 * 1000};
      nanosleep(&tenth, NULL);
    }
    for (unsigned long i = 0; i < 200; ++i) {
      sum += turn(sum + i);
    }
    char answer[64];
    const int size =
        snprintf(answer, sizeof(answer), "%s, %lu\n",
                 sum_of_kernel_code() == kernel_code ? "the kernel's code"
                                                     : "changed code",
                 sum);
    if (write(STDOUT_FILENO, answer, (size_t)size) != size) {
      return 2;
    }
  }
  return 0;
}
