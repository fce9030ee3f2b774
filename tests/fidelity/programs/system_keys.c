// A key is added to the process's own ring, read and revoked: keyctl(2).
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  const long key = syscall(SYS_add_key, "user", "fidelity", "secret", 6,
                           KEY_SPEC_PROCESS_KEYRING);
  if (key < 0 && (errno == ENOSYS || errno == EPERM)) {
    if (access("/proc/keys", R_OK) != 0) {
      dprintf(1, "the kernel has no keys here\n");
      return 77;
    }
  }
  CHECK(key > 0);
  char text[8] = "";
  CHECK(syscall(SYS_keyctl, KEYCTL_READ, key, text, 8, 0) == 6);
  CHECK(strcmp(text, "secret") == 0);
  CHECK(syscall(SYS_keyctl, KEYCTL_REVOKE, key) == 0);
  CHECK_FAILS(syscall(SYS_keyctl, KEYCTL_READ, key, text, 8, 0), EKEYREVOKED);
  return Ok();
}
