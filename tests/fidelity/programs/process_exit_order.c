// What was registered runs in reverse order, buffers are written, and _exit
// does neither: atexit(3), exit(3).
#include <string.h>
#include <sys/wait.h>

#include "check.h"

static void One(void) { printf("1"); }
static void Two(void) { printf("2"); }

static void Run(int whole, const char* wanted) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(dup2(ends[1], 1) == 1);
    CHECK(atexit(One) == 0 && atexit(Two) == 0);
    printf("0");
    if (whole) {
      exit(0);
    }
    _exit(0);
  }
  CHECK(close(ends[1]) == 0);
  char text[8] = "";
  CHECK(read(ends[0], text, 7) == (ssize_t)strlen(wanted));
  CHECK(strcmp(text, wanted) == 0);
  CHECK(waitpid(child, NULL, 0) == child);
}

int main(void) {
  Run(1, "021");
  Run(0, "");
  return Ok();
}
