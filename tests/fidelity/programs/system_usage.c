// Time that was used grows with work, and a child's counts after it was waited
// for: getrusage(2), times(2).
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

#include "check.h"

static long Used(int who) {
  struct rusage usage;
  CHECK(getrusage(who, &usage) == 0);
  return usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
}

int main(void) {
  const long before = Used(RUSAGE_SELF);
  volatile unsigned work = 0;
  while (work < 100000) {
    ++work;
  }
  CHECK(Used(RUSAGE_SELF) >= before && Used(RUSAGE_CHILDREN) == 0);
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  CHECK(waitpid(child, NULL, 0) == child);
  CHECK(Used(RUSAGE_CHILDREN) >= 0);
  struct tms all;
  CHECK(times(&all) != (clock_t)-1 && all.tms_utime >= 0);
  return Ok();
}
