#define _GNU_SOURCE
#include "daemon/core_handler/core_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// That of files which exist in memory alone.
static bool IsMemoryDevice(uint64_t device) {
  struct stat info;
  const int fd = memfd_create("", MFD_CLOEXEC);
  const bool same = fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device;
  if (fd >= 0) {
    close(fd);
  }
  return same;
}

// The type of the file system in a line of mountinfo (proc(5)), in which
// spaces are escaped; NULL if the line is of another device.
static const char* TypeOf(const char* line, uint64_t device) {
  unsigned int major = 0;
  unsigned int minor = 0;
  const char* const type = strstr(line, " - ");
  return type != NULL && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
                 makedev(major, minor) == device
             ? type + strlen(" - ")
             : NULL;
}

bool IsAnsweredByKernel(uint64_t device) {
  if (IsMemoryDevice(device)) {
    return true;
  }
  FILE* const mounts = fopen("/proc/self/mountinfo", "re");
  char* line = NULL;
  size_t room = 0;
  const char* type = NULL;
  while (mounts != NULL && type == NULL && getline(&line, &room, mounts) > 0) {
    type = TypeOf(line, device);
  }
  const bool answered = type != NULL && strncmp(type, "fuse", 4) != 0;
  free(line);
  if (mounts != NULL) {
    fclose(mounts);
  }
  return answered;
}
