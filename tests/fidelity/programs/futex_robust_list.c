// The list that was set is the one that is told, and a wrong size is refused:
// get_robust_list(2).
#include <linux/futex.h>
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  static struct robust_list_head head = {{&head.list}, 0, NULL};
  CHECK(syscall(SYS_set_robust_list, &head, sizeof(head)) == 0);
  struct robust_list_head* told = NULL;
  size_t size = 0;
  CHECK(syscall(SYS_get_robust_list, 0, &told, &size) == 0);
  CHECK(told == &head && size == sizeof(head));
  CHECK_FAILS(syscall(SYS_set_robust_list, &head, 1), EINVAL);
  return Ok();
}
