// Calls and jumps through tables, and returns from deep recursion: CALL, JMP,
// RET in Intel SDM 2.
#include "check.h"

typedef int (*step)(int);
static int Add(int x) { return x + 3; }
static int Twice(int x) { return x * 2; }
static int Less(int x) { return x - 1; }
static volatile step steps[] = {Add, Twice, Less};

static __attribute__((noinline)) int Depth(int n) {
  return n == 0 ? 0 : 1 + Depth(n - 1);
}

static int Case(int n) {
  static const void* const labels[] = {&&one, &&two, &&three};
  goto* labels[n % 3];
one:
  return 10;
two:
  return 20;
three:
  return 30;
}

int main(void) {
  int x = 1;
  for (int i = 0; i < 30; ++i) {
    x = steps[i % 3](x) % 1000;
  }
  int wanted = 1;
  for (int i = 0; i < 10; ++i) {
    wanted = ((wanted + 3) % 1000 * 2 % 1000 - 1) % 1000;
  }
  CHECK(x == wanted);
  volatile int depth = 1000;
  CHECK(Depth(depth) == 1000);
  CHECK(Case(0) == 10 && Case(4) == 20 && Case(8) == 30);
  return Ok();
}
