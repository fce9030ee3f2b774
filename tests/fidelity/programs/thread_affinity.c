// A thread is bound to one of the CPUs that it may use, and is there:
// sched_setaffinity(2), sched_getcpu(3).
#include <sched.h>

#include "check.h"

int main(void) {
  cpu_set_t all;
  CHECK(sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) > 0);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    last = CPU_ISSET(i, &all) ? i : last;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
  CHECK(CPU_EQUAL(&all, &one));
  CPU_ZERO(&one);
  CHECK_FAILS(sched_setaffinity(0, sizeof(one), &one), EINVAL);
  return Ok();
}
