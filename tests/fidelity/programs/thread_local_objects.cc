// Each thread makes its own object at its first use and destroys it at its end:
// C++17, thread_local.
#include <atomic>
#include <thread>

#include "check.h"

static std::atomic<int> made = 0;
static std::atomic<int> gone = 0;
struct Own {
  Own() { ++made; }
  ~Own() { ++gone; }
  int value = 0;
};
static thread_local Own own;

int main() {
  std::thread one([] { CHECK(++own.value == 1); });
  std::thread two([] { CHECK(++own.value == 1); });
  std::thread none([] {});
  one.join();
  two.join();
  none.join();
  CHECK(made == 2 && gone == 2);
  CHECK(++own.value == 1 && made == 3);
  return Ok();
}
