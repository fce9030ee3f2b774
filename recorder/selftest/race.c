// What `clew doctor --selftest` records: a counter that two threads change
// without a lock, until it shows.
#include <assert.h>
#include <pthread.h>

// Enough that both run at once whatever turns they get, and that somebody is
// between reading and writing most of the time.
enum { kRounds = 400, kThoughts = 10 };

static volatile long balance;

static void* Deposit(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    const long seen = balance;
    for (volatile int thought = 0; thought < kThoughts; ++thought) {
    }
    balance = seen + 1;
  }
  return unused;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, 0, Deposit, 0) != 0) {
    return 3;
  }
  Deposit(0);
  pthread_join(other, 0);
  assert(balance == 2 * kRounds);
  return 0;
}
