// A statically linked user of the C library: memory, strings, sorting, output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int Compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

int main(void) {
  enum { kCount = 200 };
  int* values = malloc(kCount * sizeof *values);
  if (values == NULL) {
    return 1;
  }
  unsigned seed = 1;
  for (int i = 0; i < kCount; ++i) {
    seed = seed * 1103515245u + 12345u;
    values[i] = (int)(seed >> 16 & 0x7fff);
  }
  qsort(values, kCount, sizeof *values, Compare);
  char text[64];
  snprintf(text, sizeof text, "%d %.3f %s", values[0], values[1] / 3.0, "end");
  printf("%s, %zu bytes\n", text, strlen(text));
  free(values);
  return 0;
}
