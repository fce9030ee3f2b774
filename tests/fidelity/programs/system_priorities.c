// Niceness and scheduling policy are told and lowered: setpriority(2),
// sched_setscheduler(2).
#include <sched.h>
#include <sys/resource.h>

#include "check.h"

int main(void) {
  errno = 0;
  const int before = getpriority(PRIO_PROCESS, 0);
  CHECK(errno == 0);
  const int wanted = before < 15 ? before + 3 : before;
  CHECK(setpriority(PRIO_PROCESS, 0, wanted) == 0);
  CHECK(getpriority(PRIO_PROCESS, 0) == wanted);
  CHECK(sched_getscheduler(0) == SCHED_OTHER);
  const struct sched_param none = {0};
  CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
  CHECK(sched_getscheduler(0) == SCHED_BATCH);
  CHECK(sched_get_priority_max(SCHED_FIFO) == 99);
  return Ok();
}
