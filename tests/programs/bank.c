// Lost update. Clerks move money into one account; the slow path takes the
// lock, the fast path for small sums was "optimised" and does not. A clerk that
// is interrupted between reading and writing the balance wipes out what the
// others paid in meanwhile.
//
// After: the account examples of Lu, Park, Seo, Zhou, "Learning from mistakes",
// ASPLOS 2008 (atomicity violation, one variable).
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kClerks = 3, kSmallSum = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long balance;
#ifdef BANK_MESSAGE  // the next version of the program has one constant more
const char bank_message[] = BANK_MESSAGE;
#endif
static int deposits = 24;

static void Deposit(long sum) {
  if (sum > kSmallSum) {
    pthread_mutex_lock(&lock);
    balance += sum;
    pthread_mutex_unlock(&lock);
    return;
  }
  long seen = *(volatile long*)&balance;
  *(volatile long*)&balance = seen + sum;  // RACY-WRITE: balance
}

// Work between two deposits that touches nothing shared.
static unsigned Audit(unsigned x) {
  for (int i = 0; i < 12; ++i) {
    x = x * 1664525 + 1013904223;
  }
  return x;
}

static void* Clerk(void* id) {
  unsigned noise = (unsigned)(long)id;
  for (int i = 0; i < deposits; ++i) {
    noise = Audit(noise);
    Deposit(i % 4 == 0 ? 100 : 10);
  }
  return (void*)(long)noise;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    deposits = atoi(argv[1]);
  }
  long expected = 0;
  for (int i = 0; i < deposits; ++i) {
    expected += kClerks * (i % 4 == 0 ? 100 : 10);
  }
  pthread_t clerks[kClerks];
  for (long i = 0; i < kClerks; ++i) {
    pthread_create(&clerks[i], NULL, Clerk, (void*)i);
  }
  for (int i = 0; i < kClerks; ++i) {
    pthread_join(clerks[i], NULL);
  }
  assert(balance == expected);
  puts("EXIT-SUCCESS");
  return 0;
}
