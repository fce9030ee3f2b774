// The message with the highest priority comes first: mq_overview(7).
#include <fcntl.h>
#include <mqueue.h>

#include "check.h"

int main(void) {
  char name[32];
  snprintf(name, sizeof(name), "/fidelity-%d", getpid());
  struct mq_attr about = {.mq_maxmsg = 2, .mq_msgsize = 8};
  const mqd_t queue =
      mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &about);
  CHECK(queue != (mqd_t)-1);
  CHECK(mq_send(queue, "low", 3, 1) == 0 && mq_send(queue, "high", 4, 9) == 0);
  CHECK_FAILS(mq_send(queue, "more", 4, 0), EAGAIN);
  CHECK(mq_getattr(queue, &about) == 0 && about.mq_curmsgs == 2);
  char text[8];
  unsigned priority;
  CHECK(mq_receive(queue, text, 8, &priority) == 4 && priority == 9);
  CHECK(mq_receive(queue, text, 8, &priority) == 3 && priority == 1);
  CHECK_FAILS(mq_receive(queue, text, 8, &priority), EAGAIN);
  CHECK(mq_close(queue) == 0 && mq_unlink(name) == 0);
  return Ok();
}
