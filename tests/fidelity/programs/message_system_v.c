// Messages are taken by their type, a long one only whole or cut: msgrcv(2),
// msgctl(2).
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#include "check.h"

struct message {
  long type;
  char text[16];
};

int main(void) {
  const int queue = msgget(IPC_PRIVATE, 0600);
  CHECK(queue >= 0);
  struct message message = {1, "one"};
  CHECK(msgsnd(queue, &message, 4, 0) == 0);
  message.type = 2;
  strcpy(message.text, "second");
  CHECK(msgsnd(queue, &message, 7, 0) == 0);
  struct msqid_ds about;
  CHECK(msgctl(queue, IPC_STAT, &about) == 0);
  CHECK(about.msg_qnum == 2 && about.msg_lspid == getpid());
  CHECK_FAILS(msgrcv(queue, &message, 3, 2, IPC_NOWAIT), E2BIG);
  CHECK(msgrcv(queue, &message, 3, 2, MSG_NOERROR) == 3);
  CHECK(message.type == 2 && memcmp(message.text, "sec", 3) == 0);
  CHECK(msgrcv(queue, &message, 16, 0, 0) == 4 && message.type == 1);
  CHECK_FAILS(msgrcv(queue, &message, 16, 0, IPC_NOWAIT), ENOMSG);
  CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
  return Ok();
}
