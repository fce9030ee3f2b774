// Runs code that it changes: functions that return a number each, at one
// address, which are called from code that stays; they are changed by system
// calls, or by stores alone. Prints of each thread and process what it called,
// as a hash of the numbers.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kThreads = 4, kRounds = 60, kCalls = 20, kChildren = 3 };

typedef uint32_t Function(void);

// The first page calls what the second one has. By stores, the third one has a
// function that changes itself.
static uint8_t* area;
static bool by_stores;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile uint32_t current;

static void Fail(const char* what) {
  printf("%s\n", what);
  exit(1);
}

static uint8_t* Word(uint8_t* at, uint32_t value) {
  memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

// call, forward; ret
static void WriteCaller(void) {
  uint8_t* at = area;
  *at++ = 0xe8;
  at = Word(at, (uint32_t)(area + kPage - (at + 4)));
  *at = 0xc3;
  if (mprotect(area, kPage, PROT_READ | PROT_EXEC) != 0) {
    Fail("no code");
  }
}

// Of two shapes: mov eax, number; ret. Or with a branch before it, and a jump.
static void WriteCallee(uint32_t number) {
  uint8_t* at = area + kPage;
  if (number % 3 == 0) {
    static const uint8_t kBranch[] = {0x48, 0x85, 0xe4,   // test rsp, rsp
                                      0x75, 0x01, 0xf4};  // jnz over a hlt
    memcpy(at, kBranch, sizeof kBranch);
    at += sizeof kBranch;
  }
  *at++ = 0xb8;
  at = Word(at, 0xc1e00000 | number);
  if (number % 2 == 0) {
    *at++ = 0xeb;  // jmp over a hlt
    *at++ = 0x01;
    *at++ = 0xf4;
  }
  *at = 0xc3;
}

static void Change(uint32_t number) {
  uint8_t* callee = area + kPage;
  if (by_stores) {
    WriteCallee(number);
    current = number;
    return;
  }
  if (number % 5 == 0) {
    if (mmap(callee, kPage, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != callee) {
      Fail("no page");
    }
  } else if (number % 5 == 1) {
    void* other = mmap(NULL, kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mremap(other, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, callee) !=
        callee) {
      Fail("no other page");
    }
  } else if (mprotect(callee, kPage, PROT_READ | PROT_WRITE) != 0) {
    Fail("no writing");
  }
  WriteCallee(number);
  if (mprotect(callee, kPage, PROT_READ | PROT_EXEC) != 0) {
    Fail("no execution");
  }
  current = number;
}

// Adds what it called to the hash.
static uint64_t Call(uint64_t hash) {
  Function* const caller = (Function*)area;
  for (int i = 0; i < kCalls; ++i) {
    const uint32_t number = caller() & 0xffff;
    if (number != current) {
      Fail("another function");
    }
    hash = hash * 31 + number;
  }
  return hash;
}

// Calls a function that returns what it has written into its own next
// instruction.
static uint64_t CallSelfChanging(uint64_t hash, uint32_t number) {
  uint32_t (*const function)(uint32_t) =
      (uint32_t (*)(uint32_t))(area + 2 * kPage);
  if (function(0xc1e00000 | number) != (0xc1e00000 | number)) {
    Fail("not what was written");
  }
  return hash * 31 + number;
}

static uint64_t Rounds(uint64_t hash, uint32_t first) {
  for (uint32_t round = 0; round < kRounds; ++round) {
    pthread_rwlock_wrlock(&lock);
    Change(first + round);
    if (by_stores) {
      hash = CallSelfChanging(hash, first + round);
    }
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_rdlock(&lock);
    hash = Call(hash);
    pthread_rwlock_unlock(&lock);
  }
  return hash;
}

static void* Thread(void* argument) {
  return (void*)Rounds(0, (uint32_t)(uintptr_t)argument);
}

static void RunThreads(void) {
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Thread, (void*)(1000 * i));
  }
  for (int i = 0; i < kThreads; ++i) {
    void* hash = NULL;
    pthread_join(threads[i], &hash);
    printf("%#lx\n", (uint64_t)hash);
  }
}

static void RunProcesses(void) {
  Change(1);
  const uint64_t hash = Call(0);
  int ends[kChildren][2];
  for (uint32_t i = 0; i < kChildren; ++i) {
    if (pipe(ends[i]) != 0) {
      Fail("no pipe");
    }
    if (fork() == 0) {
      const uint64_t its = Rounds(0, 100 * i);
      _exit(write(ends[i][1], &its, sizeof its) == sizeof its ? 0 : 1);
    }
  }
  printf("%#lx\n", Rounds(hash, 1000));
  for (uint32_t i = 0; i < kChildren; ++i) {
    uint64_t its = 0;
    if (read(ends[i][0], &its, sizeof its) != sizeof its) {
      Fail("no child");
    }
    printf("%#lx\n", its);
    wait(NULL);
  }
}

static void AllowStores(void) {
  static const uint8_t kSelfChanging[] = {0x89, 0x3d, 1, 0, 0,
                                          0,  // mov [rip + 1], edi
                                          0xb8, 0,    0, 0, 0,  // mov eax, 0
                                          0xc3};                // ret
  by_stores = true;
  if (mprotect(area + kPage, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC) !=
      0) {
    Fail("no code to write to");
  }
  memcpy(area + 2 * kPage, kSelfChanging, sizeof kSelfChanging);
}

// changing threads|processes [stores]
int main(int argc, char** argv) {
  area = mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WriteCaller();
  if (argc > 2) {
    AllowStores();
  }
  if (argc > 1 && strcmp(argv[1], "threads") == 0) {
    RunThreads();
  } else {
    RunProcesses();
  }
  return 0;
}
