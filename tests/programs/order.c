// Order violation: main takes the job board down when every job was handed out,
// not when every worker has left. A worker that comes back for another job a
// moment too late finds no board.
//
// After the crash of pbzip2 0.9.4 (main frees the queue that consumers still
// use), studied by Lu, Park, Seo, Zhou, "Learning from mistakes", ASPLOS 2008,
// and by many replay systems since.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWorkers = 2, kJobs = 6 };

struct Board {
  pthread_mutex_t lock;
  int jobs_left;
};

static struct Board* volatile board;
static volatile int jobs_done[kWorkers];

static int TakeJob(void) {
  pthread_mutex_lock(&board->lock);
  int job = board->jobs_left > 0 ? board->jobs_left-- : 0;
  pthread_mutex_unlock(&board->lock);
  return job;
}

static unsigned Work(unsigned x) {
  for (int i = 0; i < 30; ++i) {
    x = x * 1103515245 + 12345;
  }
  return x;
}

static void* Worker(void* id) {
  unsigned result = 0;
  while (TakeJob() != 0) {
    result += Work(result);
    ++jobs_done[(long)id];
  }
  return (void*)(long)result;
}

int main(void) {
  board = malloc(sizeof *board);
  pthread_mutex_init(&board->lock, NULL);
  board->jobs_left = kJobs;
  pthread_t workers[kWorkers];
  for (long i = 0; i < kWorkers; ++i) {
    pthread_create(&workers[i], NULL, Worker, (void*)i);
  }
  while (jobs_done[0] + jobs_done[1] < kJobs) {
    sched_yield();
  }
  struct Board* old = board;
  board = NULL;  // RACY-WRITE: board
  for (int i = 0; i < kWorkers; ++i) {
    pthread_join(workers[i], NULL);  // the bug: belongs before the line above
  }
  free(old);
  puts("EXIT-SUCCESS");
  return 0;
}
