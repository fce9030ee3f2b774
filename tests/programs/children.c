// Child processes of each kind, made by vfork, posix_spawn, fork and system.
// What a child calls first is bound when it is called.
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int EndsWith(pid_t child, int status) {
  int found = 0;
  return child > 0 && waitpid(child, &found, 0) == child && WIFEXITED(found) &&
         WEXITSTATUS(found) == status;
}

int main(void) {
  char* const words[] = {"sh", "-c", "exit 5", NULL};
  pid_t child = vfork();
  if (child == 0) {
    execve("/bin/sh", words, environ);
    _exit(1);
  }
  if (!EndsWith(child, 5) ||
      posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) != 0 ||
      !EndsWith(child, 5)) {
    return EXIT_FAILURE;
  }
  child = fork();
  if (child == 0) {
    execv("/bin/sh", words);
    _exit(1);
  }
  if (!EndsWith(child, 5)) {
    return EXIT_FAILURE;
  }
  const int status = system("exit 6");
  return WIFEXITED(status) && WEXITSTATUS(status) == 6 ? EXIT_SUCCESS
                                                       : EXIT_FAILURE;
}
