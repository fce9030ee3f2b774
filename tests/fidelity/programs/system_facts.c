// The system's name, memory and load are told: uname(2), sysinfo(2),
// sysconf(3).
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "check.h"

int main(void) {
  struct utsname name;
  CHECK(uname(&name) == 0);
  CHECK(strcmp(name.sysname, "Linux") == 0);
  CHECK(strcmp(name.machine, "x86_64") == 0);
  struct sysinfo facts;
  CHECK(sysinfo(&facts) == 0);
  CHECK(facts.totalram >= facts.freeram && facts.mem_unit > 0);
  CHECK(sysconf(_SC_PAGESIZE) == 4096 && getpagesize() == 4096);
  CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
  return Ok();
}
