// Threads add vectors of sixteen numbers to one total, each by a load, an
// addition under a mask and a store of 512 bits, and without a lock: additions
// get lost. On a CPU without AVX-512 the vectors are numbers one after the
// other.
#include <assert.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>

enum { kThreads = 3, kAdditions = 400, kLanes = 16 };

static _Alignas(64) int32_t total[kLanes];

// Even numbers in one step, odd ones in the next.
__attribute__((target("avx512f"))) static void AddVectors(void) {
  for (int i = 0; i < 2 * kAdditions; ++i) {
    const __mmask16 mask = (__mmask16)(i % 2 == 0 ? 0x5555 : 0xaaaa);
    const __m512i old = *(volatile __m512i*)total;
    *(volatile __m512i*)total =  // RACY-WRITE
        _mm512_mask_add_epi32(old, mask, old, _mm512_set1_epi32(1));
  }
}

static void AddNumbers(void) {
  for (int i = 0; i < kAdditions * kLanes; ++i) {
    ++*(volatile int32_t*)&total[i % kLanes];
  }
}

static void* Add(void* argument) {
  (void)argument;
  if (__builtin_cpu_supports("avx512f")) {
    AddVectors();
  } else {
    AddNumbers();
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Add, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < kLanes; ++i) {
    assert(total[i] == kThreads * kAdditions);
  }
  return 0;
}
