// Code that is made at run time: one page that is writable and executable, one
// that is first the one and then the other, code that writes into the page that
// it runs in, and code in place of other code, which threads take turns to run.
// The exit status is 0 if everything computes what it was made for.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kPageBytes = 4096, kThreads = 3, kRounds = 12 };

typedef uint64_t (*Function)(uint64_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t* shared;  // writable and executable
static uint64_t sum;

static uint8_t* NewPage(int protection) {
  uint8_t* page =
      mmap(NULL, kPageBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? NULL : page;
}

// Makes x -> x + `constant` at `at`, with a loop in it, so that its trace has
// branches.
static void MakeAdd(uint8_t* at, uint32_t constant) {
  const uint8_t code[] = {
      0x48, 0x89, 0xf8,        // mov rax, rdi
      0xb9, 0,    0,    0, 0,  // mov ecx, constant
      0x48, 0xff, 0xc0,        // again: inc rax
      0xff, 0xc9,              // dec ecx
      0x75, 0xf9,              // jnz again
      0xc3,                    // ret
  };
  memcpy(at, code, sizeof(code));
  memcpy(at + 4, &constant, sizeof(constant));
}

// Makes x -> x * 2 at `at`: other branches than those of MakeAdd.
static void MakeDouble(uint8_t* at) {
  const uint8_t code[] = {
      0x48, 0x8d, 0x04, 0x3f,  // lea rax, [rdi + rdi]
      0x48, 0x85, 0xc0,        // test rax, rax
      0x75, 0x01,              // jnz done
      0x90,                    // nop
      0xc3,                    // done: ret
  };
  memcpy(at, code, sizeof(code));
}

// Makes x -> 3 at `at`, of code that writes a number into the next page quarter
// and into its own instructions before it comes to them.
static void MakeSelfWriting(uint8_t* at) {
  const uint8_t code[] = {
      0x89, 0x3d, 0xfa, 0x03, 0, 0,  // mov [rip + 0x3fa], edi
      0xff, 0x05, 0xf4, 0x03, 0, 0,  // inc dword [rip + 0x3f4]
      0xc7, 0x05, 1,    0,    0, 0,  // mov dword [rip + 1],
      3,    0,    0,    0,           //     3
      0xb8, 1,    0,    0,    0,     // mov eax, 1 (3 by then)
      0xc3,                          // ret
  };
  memcpy(at, code, sizeof(code));
}

static uint64_t Call(const uint8_t* at, uint64_t x) {
  Function function = NULL;
  memcpy(&function, &at, sizeof(function));
  return function(x);
}

static int RunProtected(void) {
  uint8_t* page = NewPage(PROT_READ | PROT_WRITE);
  int right = 1;
  for (uint32_t i = 1; i <= 4; ++i) {
    MakeAdd(page + 64, i);
    mprotect(page, kPageBytes, PROT_READ | PROT_EXEC);
    right = right && Call(page + 64, 40) == 40 + i;
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  }
  MakeDouble(page + 64);
  mprotect(page, kPageBytes, PROT_READ | PROT_EXEC);
  right = right && Call(page + 64, 21) == 42;
  munmap(page, kPageBytes);
  return right;
}

static int RunSelfWriting(void) {
  uint8_t* page = NewPage(PROT_READ | PROT_WRITE | PROT_EXEC);
  MakeSelfWriting(page);
  int right = 1;
  for (uint32_t i = 0; i < 3; ++i) {
    right = right && Call(page, i) == 3;
  }
  return right;
}

static void* Work(void* id) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&lock);
    if (i % 3 == 2) {
      MakeDouble(shared);
      sum += Call(shared, 5);
    } else if (i % 3 == 1) {
      MakeAdd(shared, (uint32_t)(intptr_t)id);
      sum += Call(shared, 0);
    } else {
      sum += Call(shared, 0) > 0;  // whatever was made last
    }
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  const int protected_right = RunProtected();
  const int self_right = RunSelfWriting();
  shared = NewPage(PROT_READ | PROT_WRITE | PROT_EXEC);
  MakeAdd(shared, 1);
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, (void*)(i + 1));
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  // A third of the rounds each: 10, 1 to 3, 0 or 1.
  const uint64_t least =
      kThreads * kRounds / 3 * 10 + kRounds / 3 * (1 + 2 + 3);
  const int right = protected_right && self_right && sum >= least &&
                    sum <= least + kThreads * kRounds / 3;
  printf("protected %d, self-writing %d, sum right %d\n", protected_right,
         self_right, right);
  return right ? 0 : 1;
}
