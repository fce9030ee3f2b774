// A closed end, an unknown descriptor and one that is left out are told each in
// its way: poll(2).
#include <poll.h>

#include "check.h"

int main(void) {
  int one[2];
  int two[2];
  CHECK(pipe(one) == 0 && pipe(two) == 0);
  CHECK(close(one[1]) == 0 && close(two[0]) == 0);
  struct pollfd all[4] = {{one[0], POLLIN, 0},
                          {two[1], POLLOUT, 0},
                          {999, POLLIN, 0},
                          {-1, POLLIN, 5}};
  CHECK(poll(all, 4, -1) == 3);
  CHECK(all[0].revents == POLLHUP);
  CHECK((all[1].revents & POLLERR) != 0);
  CHECK(all[2].revents == POLLNVAL && all[3].revents == 0);
  return Ok();
}
