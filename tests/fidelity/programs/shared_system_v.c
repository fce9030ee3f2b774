// A segment attached twice is one memory, and is gone after the last detach:
// shmat(2), shmctl(2).
#include <sys/ipc.h>
#include <sys/shm.h>

#include "check.h"

int main(void) {
  const int segment = shmget(IPC_PRIVATE, 5000, 0600);
  CHECK(segment >= 0);
  char* one = shmat(segment, NULL, 0);
  char* other = shmat(segment, NULL, SHM_RDONLY);
  CHECK(one != (char*)-1 && other != (char*)-1 && one != other);
  one[4999] = 'x';
  CHECK(other[4999] == 'x');
  struct shmid_ds about;
  CHECK(shmctl(segment, IPC_STAT, &about) == 0);
  CHECK(about.shm_segsz == 5000 && about.shm_nattch == 2);
  CHECK(shmctl(segment, IPC_RMID, NULL) == 0);
  CHECK(shmdt(one) == 0 && other[4999] == 'x' && shmdt(other) == 0);
  CHECK_FAILS(shmctl(segment, IPC_STAT, &about), EINVAL);
  return Ok();
}
