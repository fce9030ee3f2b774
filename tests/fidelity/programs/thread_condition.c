// Two threads pass a token to and fro by one condition: pthread_cond_wait(3).
#include <pthread.h>
#include <stdint.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn = 0;

static void* Play(void* mine) {
  for (int i = 0; i < 20; ++i) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    while (turn % 2 != (intptr_t)mine) {
      CHECK(pthread_cond_wait(&turned, &mutex) == 0);
    }
    ++turn;
    CHECK(pthread_cond_signal(&turned) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
  }
  return NULL;
}

int main(void) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Play, (void*)1) == 0);
  Play(NULL);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(turn == 40);
  return Ok();
}
