// In place of `clew` below a collector: tries what a decoder that was taken
// over by a bundle would, and tells it as the title of the bundle's group: "all
// refused", or the names of what was not.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// Made by the scenario, of the collector's user and in its store.
#define VICTIM "/var/lib/clew-collector/victim"

static char done[512];

static void Try(const char* what, int result) {
  if (result >= 0) {
    strcat(done, " ");
    strcat(done, what);
  }
}

static void TryFiles(void) {
  Try("truncate", truncate(VICTIM, 0));
  Try("chmod", chmod(VICTIM, 0777));
  Try("chown", chown(VICTIM, getuid(), getgid()));
  Try("utimes", utimensat(AT_FDCWD, VICTIM, NULL, 0));
  Try("unlink", unlink(VICTIM));
  Try("read-store", open(VICTIM, O_RDONLY));
  Try("write-store", open(VICTIM, O_WRONLY));
  Try("read-secrets", open("/etc/clew/collector.d/server.key", O_RDONLY));
  Try("read-passwd", open("/etc/passwd", O_RDONLY));
  Try("list-store", open("/var/lib/clew-collector", O_RDONLY | O_DIRECTORY));
}

static void TryParent(void) {
  const struct sched_param lowest = {0};
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  Try("kill", kill(getppid(), 0));
  Try("setpriority", setpriority(PRIO_PROCESS, (id_t)getppid(), 19));
  Try("scheduler", sched_setscheduler(getppid(), SCHED_IDLE, &lowest));
  Try("affinity", sched_setaffinity(getppid(), sizeof(cpus), &cpus));
}

int main(void) {
  TryFiles();
  TryParent();
  Try("inet", socket(AF_INET, SOCK_STREAM, 0));
  Try("unix", socket(AF_UNIX, SOCK_STREAM, 0));
  printf(
      "{\"signature\": \"%064d\", \"title\": \"probe:%s\", \"threads\": []}\n",
      7, done[0] == 0 ? " all refused" : done);
  return 0;
}
