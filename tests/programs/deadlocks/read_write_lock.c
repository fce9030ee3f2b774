// A writer waits, with the journal locked, for the reader of the table; that
// one waits for the journal.
#include <pthread.h>

enum { kRounds = 30 };

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static long entries;

static void* Write(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&journal);   // holds journal
    pthread_rwlock_wrlock(&table);  // wants table
    ++entries;
    pthread_rwlock_unlock(&table);
    pthread_mutex_unlock(&journal);
  }
  return unused;
}

static void* Read(void* unused) {
  long seen = 0;
  for (int i = 0; i < kRounds; ++i) {
    pthread_rwlock_rdlock(&table);  // holds table
    seen += entries;
    pthread_mutex_lock(&journal);  // wants journal
    pthread_mutex_unlock(&journal);
    pthread_rwlock_unlock(&table);
  }
  return seen >= 0 ? unused : NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Write, NULL);
  pthread_create(&threads[1], NULL, Read, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
