// Two threads; one is sent a signal that it handles, and the program fails in
// what the handler has counted.
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int begun;
static volatile sig_atomic_t handled;

static void OnSignal(int number) { handled += number == SIGUSR1; }

static void* Work(void* unused) {
  begun = 1;
  while (handled < 2) {
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  signal(SIGUSR1, OnSignal);
  pthread_create(&thread, NULL, Work, NULL);
  while (!begun) {
  }
  pthread_kill(thread, SIGUSR1);
  while (handled < 1) {
  }
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, NULL);
  assert(handled != 2);
  return 0;
}
