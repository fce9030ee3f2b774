// Each thread has a name of at most 15 bytes, which its folder in /proc shows:
// prctl(2), PR_SET_NAME, pthread_setname_np(3).
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "check.h"

static void* Other(void* unused) {
  char name[16];
  CHECK(pthread_setname_np(pthread_self(), "worker") == 0);
  CHECK(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "worker") == 0);
  return unused;
}

int main(void) {
  char name[16];
  CHECK(prctl(PR_SET_NAME, "a name that is too long") == 0);
  CHECK(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "a name that is ") == 0);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  char text[32] = "";
  const int fd = open("/proc/thread-self/comm", O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 16);
  CHECK(strcmp(text, "a name that is \n") == 0);
  return Ok();
}
