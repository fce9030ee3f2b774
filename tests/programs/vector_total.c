// Threads add vectors of eight numbers to one total, each by a load, an
// addition and a store of 256 bits, and without a lock: additions get lost. On
// a CPU without AVX2 the vectors are numbers one after the other.
#include <assert.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>

enum { kThreads = 3, kAdditions = 400, kLanes = 8 };

static _Alignas(32) int32_t total[kLanes];

__attribute__((target("avx2"))) static void AddVectors(void) {
  for (int i = 0; i < kAdditions; ++i) {
    const __m256i sum =
        _mm256_add_epi32(*(volatile __m256i*)total, _mm256_set1_epi32(1));
    *(volatile __m256i*)total = sum;  // RACY-WRITE
  }
}

static void AddNumbers(void) {
  for (int i = 0; i < kAdditions * kLanes; ++i) {
    ++*(volatile int32_t*)&total[i % kLanes];
  }
}

static void* Add(void* argument) {
  (void)argument;
  if (__builtin_cpu_supports("avx2")) {
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
