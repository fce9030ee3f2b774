// A reader polls a plain flag, more often than anything keeps count of; its
// path tells how often. In every other round the flag is set before the data.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int flag, data;
static int rounds = 5;
static int work = 400;

static void Spin(int turns) {
  for (volatile int i = 0; i < turns; ++i) {
  }
}

static void* Wait(void* unused) {
  for (int i = 1; i <= rounds; ++i) {
    while (flag < i) {
    }
    int seen = data;
    assert(seen == i);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  if (argc > 2) {
    work = atoi(argv[2]);
  }
  pthread_t waiter;
  pthread_create(&waiter, NULL, Wait, NULL);
  for (int i = 1; i <= rounds; ++i) {
    Spin(work);
    if (i % 2 == 0) {
      data = i;
      flag = i;
    } else {
      flag = i;
      Spin(3);
      data = i;  // RACY-WRITE: data
    }
    Spin(work);
  }
  pthread_join(waiter, NULL);
  puts("EXIT-SUCCESS");
  return 0;
}
