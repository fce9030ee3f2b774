// Parallel scan with lock misuse: workers look whether the queue holds another
// file outside the lock and take it inside. Two workers that both see the last
// file take one too many: the second scans what lies behind the end, a null
// pointer.
//
// After pfscan, the parallel file scanner used by the CLAP and H3 evaluations
// (PLDI 2013, CAV 2017); the scanned "files" are strings in memory.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { kWorkers = 3, kFiles = 7, kLetters = 32 };

static const char* queue[kFiles + kWorkers] = {
    "ariadne gave theseus", "a clew of thread", "to find the way",
    "back out of the maze", "a clew is a ball", "of yarn or thread",
    "hence the word clue",
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int next_file;
static int matches;

static int CountWord(const char* text, const char* word,
                     volatile int* letters) {
  int found = 0;
  size_t length = strlen(word);
  for (; *text != '\0'; ++text) {
    ++letters[*text % kLetters];
    found += strncmp(text, word, length) == 0;
  }
  return found;
}

static void* Scan(void* word) {
  volatile int letters[kLetters];
  while (next_file < kFiles) {  // the bug: not under the lock
    for (int i = 0; i < kLetters; ++i) {
      letters[i] = 0;
    }
    pthread_mutex_lock(&lock);
    const char* file = queue[next_file];
    next_file = next_file + 1;  // RACY-WRITE: next_file
    pthread_mutex_unlock(&lock);
    int found = CountWord(file, word, letters);
    pthread_mutex_lock(&lock);
    matches += found;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  pthread_t workers[kWorkers];
  for (int i = 0; i < kWorkers; ++i) {
    pthread_create(&workers[i], NULL, Scan, "clew");
  }
  for (int i = 0; i < kWorkers; ++i) {
    pthread_join(workers[i], NULL);
  }
  puts(matches == 2 ? "EXIT-SUCCESS" : "wrong number of matches");
  return matches != 2;
}
