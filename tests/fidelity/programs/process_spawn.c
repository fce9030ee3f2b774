// A child is started with its output in a file, and one that cannot be started
// is told at once: posix_spawn(3).
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "check.h"

int main(int count, char** words) {
  if (count == 2) {
    return printf("%s", words[1]) == 5 ? 4 : 1;
  }
  posix_spawn_file_actions_t actions;
  CHECK(posix_spawn_file_actions_init(&actions) == 0);
  CHECK(posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_CREAT,
                                         0600) == 0);
  char* arguments[] = {words[0], "hello", NULL};
  pid_t child;
  int status;
  CHECK(posix_spawn(&child, words[0], &actions, NULL, arguments, NULL) == 0);
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
  char text[8];
  const int fd = open("out", O_RDONLY);
  CHECK(read(fd, text, sizeof(text)) == 5 && text[4] == 'o');
  CHECK(posix_spawn(&child, "none", NULL, NULL, arguments, NULL) == ENOENT);
  return Ok();
}
