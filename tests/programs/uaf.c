// Use after free by a race: a reader looks whether the session is alive and
// then uses it; the closer frees it in between. The allocator writes its own
// links into the freed block, so the reader jumps through a pointer that is
// none.
//
// After the browser and driver bugs of Yu, Narayanasamy, "A case for an
// interleaving constrained shared-memory multi-processor", ISCA 2009.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kReads = 100 };

struct Session {
  const int* table;  // the allocator's link lies here once it is freed
  long reads;
};

static const int kTable[4] = {2, 3, 5, 7};
static struct Session* volatile session;

static unsigned Think(unsigned x) {
  for (int i = 0; i < 12; ++i) {
    x = x * 22695477 + 1;
  }
  return x;
}

static void* Read(void* unused) {
  unsigned sum = 0;
  for (int i = 0; i < kReads; ++i) {
    sum = Think(sum);
    struct Session* mine = session;
    if (mine == NULL) {
      break;
    }
    ++mine->reads;
    sum += (unsigned)mine->table[sum % 4];  // may be free by now
  }
  return unused == NULL ? (void*)(long)sum : unused;
}

static void* Close(void* unused) {
  (void)Think(1);
  struct Session* mine = session;
  free(mine);  // RACY-WRITE: mine->table, by the allocator
  session = NULL;
  return unused;
}

int main(void) {
  session = malloc(sizeof *session);
  *session = (struct Session){kTable, 0};
  pthread_t reader, closer;
  pthread_create(&reader, NULL, Read, NULL);
  pthread_create(&closer, NULL, Close, NULL);
  pthread_join(reader, NULL);
  pthread_join(closer, NULL);
  puts("EXIT-SUCCESS");
  return 0;
}
