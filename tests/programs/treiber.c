// Lock-free stack with ABA. Pop reads the head's successor, then swings the
// head by compare-and-swap; between the two, others may take the node, take its
// successor, and push the node back. Then a node is handed out that somebody
// else owns.
//
// Usage: treiber [rounds [threads]]
//
// After: R. K. Treiber, "Systems programming: coping with parallelism", IBM
// RJ 5118 (1986).
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kNodes = 8, kThreadsMax = 16 };

struct Node {
  struct Node* volatile next;
  volatile int owned;
};

static struct Node nodes[kNodes];
static struct Node* volatile head;
static int rounds = 30;
static int threads = 3;

static void Push(struct Node* node) {
  struct Node* seen;
  do {
    seen = head;
    node->next = seen;
  } while (!__sync_bool_compare_and_swap(&head, seen, node));
}

static struct Node* Pop(void) {
  struct Node *seen, *next;
  do {
    seen = head;
    if (seen == NULL) {
      return NULL;
    }
    next = seen->next;
  } while (!__sync_bool_compare_and_swap(&head, seen, next));
  return seen;
}

static void Own(struct Node* node) {
  if (node != NULL) {
    assert(!node->owned);
    node->owned = 1;
  }
}

static void GiveBack(struct Node* node) {
  if (node != NULL) {
    node->owned = 0;
    Push(node);
  }
}

static void* Work(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    struct Node* first = Pop();
    struct Node* second = Pop();
    Own(first);
    Own(second);
    GiveBack(first);
    GiveBack(second);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  if (argc > 2) {
    threads = atoi(argv[2]);
  }
  assert(threads <= kThreadsMax);
  for (int i = 0; i < kNodes; ++i) {
    Push(&nodes[i]);
  }
  pthread_t workers[kThreadsMax];
  for (int i = 0; i < threads; ++i) {
    pthread_create(&workers[i], NULL, Work, NULL);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
