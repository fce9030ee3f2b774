// Threads add dot products of their own vectors to one sum without a lock:
// products get lost. The loop is the compiler's own, one version for each width
// of vectors. Numbers are small integers, so the sum is exact in any order.
#include <assert.h>
#include <pthread.h>

enum { kThreads = 3, kRounds = 60, kLength = 200 };

static float vectors[kThreads + 1][kLength];
static volatile float sum;

__attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3",
                                       "default"))) static float
Dot(const float* a, const float* b, int length) {
  float dot = 0;
  for (int i = 0; i < length; ++i) {
    dot += a[i] * b[i];
  }
  return dot;
}

static void* Add(void* argument) {
  const float* own = argument;
  for (int i = 0; i < kRounds; ++i) {
    const float before = sum;
    sum = before + Dot(own, vectors[kThreads], kLength);  // RACY-WRITE
  }
  return NULL;
}

int main(void) {
  float wanted = 0;
  for (int i = 0; i <= kThreads; ++i) {
    for (int j = 0; j < kLength; ++j) {
      vectors[i][j] = (float)((i + j) % 4);
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    wanted += kRounds * Dot(vectors[i], vectors[kThreads], kLength);
  }
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Add, vectors[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  assert(sum == wanted);
  return 0;
}
