// A name is copied by the C library while another thread copies another one
// over it.
#include <assert.h>
#include <pthread.h>
#include <string.h>

enum { kRounds = 60, kBytes = 120 };

static char name[kBytes];
static volatile size_t name_bytes = kBytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long renamed;

static void* Rename(void* unused) {
  char texts[2][kBytes];
  memset(texts[0], 'a', kBytes);
  memset(texts[1], 'b', kBytes);
  for (int i = 0; i < kRounds; ++i) {
    memcpy(name, texts[i % 2], name_bytes);  // race
    pthread_mutex_lock(&lock);
    ++renamed;
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

static void* Show(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    char text[kBytes];
    pthread_mutex_lock(&lock);
    ++renamed;
    pthread_mutex_unlock(&lock);
    memcpy(text, name, name_bytes);  // race
    assert(text[0] == text[kBytes - 1]);
  }
  return unused;
}

int main(void) {
  memset(name, 'a', kBytes);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Rename, NULL);
  pthread_create(&threads[1], NULL, Show, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
