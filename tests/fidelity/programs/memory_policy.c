// The memory policy of a thread, and the nodes that it may use, are told in
// whole words: get_mempolicy(2).
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "check.h"

static long GetPolicy(int* mode, unsigned long* nodes, unsigned long bits,
                      unsigned long flags) {
  return syscall(SYS_get_mempolicy, mode, nodes, bits, NULL, flags);
}

int main(void) {
  const unsigned long untouched = ~0ul;
  unsigned long nodes[4] = {untouched, untouched, untouched, untouched};
  int mode = -1;
  CHECK(GetPolicy(&mode, NULL, 0, 0) == 0 && mode == MPOL_DEFAULT);
  CHECK(GetPolicy(NULL, nodes, 129, MPOL_F_MEMS_ALLOWED) == 0);
  CHECK((nodes[0] & 1) != 0 && nodes[0] != untouched && nodes[1] == 0);
  CHECK(nodes[2] == untouched);
  CHECK(GetPolicy(&mode, nodes, 130, 0) == 0);
  CHECK(nodes[0] == 0 && nodes[1] == 0 && nodes[2] == 0);
  CHECK(nodes[3] == untouched);
  CHECK_FAILS(GetPolicy(NULL, nodes, 129, 1ul << 40), EINVAL);
  return Ok();
}
