// A set's members are set, changed together or not at all, and told: semop(2),
// semctl(2).
#include <sys/ipc.h>
#include <sys/sem.h>

#include "check.h"

int main(void) {
  const int set = semget(IPC_PRIVATE, 2, 0600);
  CHECK(set >= 0);
  union {
    int value;
    unsigned short* all;
    struct semid_ds* about;
  } argument = {.value = 3};
  CHECK(semctl(set, 0, SETVAL, argument) == 0);
  struct sembuf both[2] = {{0, -2, IPC_NOWAIT}, {1, -1, IPC_NOWAIT}};
  CHECK_FAILS(semop(set, both, 2), EAGAIN);
  CHECK(semctl(set, 0, GETVAL) == 3);
  both[1].sem_op = 4;
  CHECK(semop(set, both, 2) == 0);
  unsigned short values[2];
  argument.all = values;
  CHECK(semctl(set, 0, GETALL, argument) == 0);
  CHECK(values[0] == 1 && values[1] == 4);
  CHECK(semctl(set, 1, GETPID) == getpid());
  struct semid_ds about;
  argument.about = &about;
  CHECK(semctl(set, 0, IPC_STAT, argument) == 0 && about.sem_nsems == 2);
  CHECK((about.sem_perm.mode & 0777) == 0600 && about.sem_otime != 0);
  CHECK(semctl(set, 0, IPC_RMID) == 0);
  CHECK_FAILS(semctl(set, 0, GETVAL), EINVAL);
  return Ok();
}
