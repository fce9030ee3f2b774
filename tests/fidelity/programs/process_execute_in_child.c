// A child executes the file of its process, which procfs names: execve(2),
// proc(5).
#include <string.h>
#include <sys/wait.h>

#include "check.h"

int main(int count, char** words) {
  if (count == 3) {
    return strcmp(words[1], "again") == 0 && getenv("KNOWN") != NULL ? 4 : 1;
  }
  CHECK(setenv("KNOWN", "yes", 1) == 0);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", words[0], "again", "and more", NULL);
    _exit(2);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
  return Ok();
}
