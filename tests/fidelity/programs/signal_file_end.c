// Memory beyond the end of a mapped file is a bus error with its address:
// mmap(2), BUS_ADRERR.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

static sigjmp_buf back;
static void* volatile address;
static void OnBus(int number, siginfo_t* info, void* context) {
  (void)context;
  address = info->si_addr;
  siglongjmp(back, number == SIGBUS ? info->si_code : -1);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnBus, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGBUS, &action, NULL) == 0);
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(ftruncate(fd, 100) == 0);
  volatile char* map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(map != MAP_FAILED && map[4095] == 0);
  const int code = sigsetjmp(back, 1);
  if (code == 0) {
    (void)map[4100];
    CHECK(0);
  }
  CHECK(code == BUS_ADRERR && address == map + 4100);
  return Ok();
}
