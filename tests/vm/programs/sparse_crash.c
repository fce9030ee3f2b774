// Dies with GIB (4) of memory of which eight pages were touched.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char** argv) {
  const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 4) << 30;
  char* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return 2;
  }
  for (size_t i = 0; i < 8; ++i) {
    memset(memory + bytes / 8 * i, (int)i + 1, 4096);
  }
  abort();
}
