// A pointer is checked and used in two steps, and taken away in between. The
// table of statistics around it has a lock.
#include <pthread.h>
#include <stdlib.h>

enum { kRounds = 200 };

struct Session {
  long user;
};

static struct Session* volatile session;
static struct Session the_session = {7};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long looked_up;
static long sum;

static void* Look(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&lock);
    ++looked_up;
    pthread_mutex_unlock(&lock);
    if (session != NULL) {   // race
      sum += session->user;  // race
    }
  }
  return unused;
}

static void* LogOut(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    session = NULL;  // race
    pthread_mutex_lock(&lock);
    ++looked_up;
    pthread_mutex_unlock(&lock);
    session = &the_session;
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  session = &the_session;
  pthread_create(&threads[0], NULL, Look, NULL);
  pthread_create(&threads[1], NULL, LogOut, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
