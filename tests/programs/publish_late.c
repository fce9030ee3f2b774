// Racy publication, tested late: what was loaded through the racy pointer is
// branched on only after other branches.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct Object {
  int kind;
  int unused[30];
};

static struct Object objects[2] = {{.kind = 7}, {.kind = 9}};
static struct Object* volatile published;
static long hits[2];
static int rounds = 40;

static void Spin(int turns) {
  for (volatile int i = 0; i < turns; ++i) {
  }
}

static void* Publish(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    published = &objects[i % 2];
    Spin(7);
    published = NULL;
    Spin(5);
  }
  return unused;
}

static void* Use(void* id) {
  volatile long mine = 0;
  for (int i = 0; i < 2 * rounds; ++i) {
    struct Object* object = published;
    if (object != NULL) {
      const int kind = *(volatile int*)&object->kind;
      if (i % 2 == 1) {
        mine += 16;
      }
      if (kind == 7) {
        mine += 1;
      } else if (kind == 9) {
        mine += 2;
      }
    }
    Spin(3);
  }
  hits[(long)id] = mine;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  pthread_t publisher, users[2];
  pthread_create(&publisher, NULL, Publish, NULL);
  pthread_create(&users[0], NULL, Use, (void*)0);
  pthread_create(&users[1], NULL, Use, (void*)1);
  pthread_join(publisher, NULL);
  pthread_join(users[0], NULL);
  pthread_join(users[1], NULL);
  assert(hits[0] == hits[1]);
  puts("EXIT-SUCCESS");
  return 0;
}
