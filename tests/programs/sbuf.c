// Atomicity violation of a string buffer: Append(to, from) asks for the length
// of `from` and copies that many characters in two critical sections; in
// between another thread may shorten `from`. Every single access is locked, so
// there is no data race, only a wrong assumption.
//
// After java.lang.StringBuffer.append of JDK 1.4, found by Flanagan, Qadeer,
// "A type and effect system for atomicity", PLDI 2003.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kCapacity = 256, kRounds = 40, kWord = 5 };

struct Buffer {
  pthread_mutex_t lock;
  int length;
  char text[kCapacity];
};

static struct Buffer shared = {PTHREAD_MUTEX_INITIALIZER, 0, ""};

static int Length(struct Buffer* buffer) {
  pthread_mutex_lock(&buffer->lock);
  int length = buffer->length;
  pthread_mutex_unlock(&buffer->lock);
  return length;
}

static void SetText(struct Buffer* buffer, const char* text, int length) {
  pthread_mutex_lock(&buffer->lock);
  memcpy(buffer->text, text, (size_t)length);
  buffer->length = length;  // RACY-WRITE: shared.length
  pthread_mutex_unlock(&buffer->lock);
}

static void CopyOut(struct Buffer* buffer, char* out, int length) {
  pthread_mutex_lock(&buffer->lock);
  assert(length <= buffer->length);
  memcpy(out, buffer->text, (size_t)length);
  pthread_mutex_unlock(&buffer->lock);
}

static void Append(struct Buffer* to, struct Buffer* from) {
  int length = Length(from);
  CopyOut(from, to->text + to->length, length);  // `from` may be shorter now
  to->length += length;
}

static void* Shorten(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    SetText(&shared, "clews", kWord);
    for (volatile int pause = 0; pause < 10; ++pause) {
    }
    SetText(&shared, "", 0);
  }
  return unused;
}

int main(void) {
  static struct Buffer mine = {PTHREAD_MUTEX_INITIALIZER, 0, ""};
  pthread_t other;
  pthread_create(&other, NULL, Shorten, NULL);
  for (int i = 0; i < kRounds; ++i) {
    Append(&mine, &shared);
  }
  pthread_join(other, NULL);
  puts("EXIT-SUCCESS");
  return 0;
}
