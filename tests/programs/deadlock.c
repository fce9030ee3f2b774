// Lock-order deadlock: two transfers in opposite directions take the same two
// account locks in opposite orders. The failure is a hang.
//
// After Coffman, Elphick, Shoshani, "System deadlocks" (1971), and the lock
// bugs of Lu, Park, Seo, Zhou, "Learning from mistakes", ASPLOS 2008.
#include <pthread.h>
#include <stdio.h>

enum { kTransfers = 6 };

struct Account {
  pthread_mutex_t lock;
  long balance;
};

static struct Account accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 1000},
                                     {PTHREAD_MUTEX_INITIALIZER, 1000}};

static void Transfer(struct Account* from, struct Account* to, long sum) {
  pthread_mutex_lock(&from->lock);
  from->balance -= sum;           // RACY-WRITE: accounts
  pthread_mutex_lock(&to->lock);  // the bug: the other thread holds it
  to->balance += sum;
  pthread_mutex_unlock(&to->lock);
  pthread_mutex_unlock(&from->lock);
}

static unsigned Think(unsigned x) {
  for (int i = 0; i < 60; ++i) {
    x = x * 69069 + 1;
  }
  return x;
}

static void* Teller(void* direction) {
  long from = (long)direction;
  unsigned noise = 0;
  for (int i = 0; i < kTransfers; ++i) {
    noise = Think(noise);
    Transfer(&accounts[from], &accounts[1 - from], i);
  }
  return (void*)(long)noise;
}

int main(void) {
  pthread_t tellers[2];
  for (long i = 0; i < 2; ++i) {
    pthread_create(&tellers[i], NULL, Teller, (void*)i);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(tellers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
