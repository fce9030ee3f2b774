// Racy publication. One thread publishes a pointer and takes it back; two
// others take it if there is one, branch on what it points to, and count there
// without a lock. So the address of a store depends on a race.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct Object {
  int kind;
  int unused[14];
  volatile int uses;
};

static struct Object objects[2] = {{.kind = 7}, {.kind = 9}};
static struct Object* volatile published;
static volatile int hits;
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

static void* Use(void* unused) {
  for (int i = 0; i < 2 * rounds; ++i) {
    struct Object* object = published;
    if (object != NULL) {
      if (object->kind == 7) {
        hits += 1;  // RACY-WRITE: hits
      } else if (object->kind == 9) {
        hits += 2;
      }
      const int uses = object->uses;
      object->uses = uses + 1;
    }
    Spin(3);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  pthread_t publisher, users[2];
  pthread_create(&publisher, NULL, Publish, NULL);
  pthread_create(&users[0], NULL, Use, NULL);
  pthread_create(&users[1], NULL, Use, NULL);
  pthread_join(publisher, NULL);
  pthread_join(users[0], NULL);
  pthread_join(users[1], NULL);
  assert(objects[0].uses + 2 * objects[1].uses == hits);
  puts("EXIT-SUCCESS");
  return 0;
}
