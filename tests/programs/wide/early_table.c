// A table of sines is said to be ready before its last entries are filled in;
// who then adds it up gets another sum. Sines are libm's, by FMA where the CPU
// has it; the loop over the table is the compiler's own, one version for each
// width of vectors.
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { kEntries = 96, kEarly = 4, kRounds = 4 };

typedef struct {
  atomic_int ready;
  int64_t entries[kEntries];
} Table;

static Table tables[kRounds];
static int64_t wanted;

static int64_t Entry(int i) { return (int64_t)(sin(i * 0.37) * 1e9); }

__attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3",
                                       "default"))) static int64_t
Total(const int64_t* entries) {
  int64_t total = 0;
  for (int i = 0; i < kEntries; ++i) {
    total += entries[i] * (entries[i] >> 3);
  }
  return total;
}

static void* Fill(void* argument) {
  (void)argument;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kEntries; ++i) {
      if (i == kEntries - kEarly) {
        tables[round].ready = 1;
      }
      tables[round].entries[i] = Entry(i);  // RACY-WRITE
    }
  }
  return NULL;
}

static void* AddUp(void* argument) {
  (void)argument;
  for (int round = 0; round < kRounds; ++round) {
    while (!tables[round].ready) {
    }
    assert(Total(tables[round].entries) == wanted);
  }
  return NULL;
}

int main(void) {
  static int64_t entries[kEntries];
  for (int i = 0; i < kEntries; ++i) {
    entries[i] = Entry(i);
  }
  wanted = Total(entries);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Fill, NULL);
  pthread_create(&threads[1], NULL, AddUp, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
