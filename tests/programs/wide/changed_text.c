// One thread replaces a text by strcpy while another measures and then copies
// it, without a lock: what is copied may be of another length than was
// measured. libc's functions look at as many bytes at once as the CPU can.
#include <assert.h>
#include <pthread.h>
#include <string.h>

enum { kRounds = 200, kBytes = 256 };

static const char* const kTexts[] = {
    "server.example.org",
    "a-server-with-a-much-longer-name-than-that.in-some-department."
    "of-a-large-organisation.example.org:65535/with/a/long/path"};

static char text[kBytes] = "server.example.org";

static void* Replace(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    strcpy(text, kTexts[i % 2]);  // RACY-WRITE
  }
  return NULL;
}

static void* Copy(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    char copied[kBytes];
    memset(copied, 0, sizeof copied);
    const size_t length = strlen(text);
    memcpy(copied, text, length + 1);
    assert(strlen(copied) == length && strchr(copied, '.') != NULL);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Replace, NULL);
  pthread_create(&threads[1], NULL, Copy, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
