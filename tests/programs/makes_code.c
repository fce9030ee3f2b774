// Two threads make code and run it, more of it than any other program has: each
// address of their pages is a function of its own. Ends by abort(3).
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kThreads = 2, kFunctions = 140 * 4096 };

static void* MakeAndRun(void* argument) {
  (void)argument;
  unsigned char* const code = mmap(NULL, kFunctions, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) {
    return NULL;
  }
  memset(code, 0xc3, kFunctions);  // ret
  mprotect(code, kFunctions, PROT_READ | PROT_EXEC);
  for (long i = 0; i < kFunctions; ++i) {
    ((void (*)(void))(void*)(code + i))();
  }
  return code;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, MakeAndRun, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    void* code = NULL;
    pthread_join(threads[i], &code);
    if (code == NULL) {
      return 1;
    }
  }
  abort();
}
