// Values go through a queue, waited for with a condition, under a shared lock:
// C++17, std::condition_variable, std::shared_mutex.
#include <condition_variable>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <thread>

#include "check.h"

int main() {
  std::mutex mutex;
  std::condition_variable filled;
  std::queue<int> queue;
  std::shared_mutex shared;
  int sum = 0;
  std::thread taker([&] {
    for (int i = 0; i < 10; ++i) {
      std::unique_lock lock(mutex);
      filled.wait(lock, [&] { return !queue.empty(); });
      const std::unique_lock writing(shared);
      sum += queue.front();
      queue.pop();
    }
  });
  for (int i = 0; i < 10; ++i) {
    const std::lock_guard lock(mutex);
    queue.push(i);
    filled.notify_one();
  }
  taker.join();
  const std::shared_lock reading(shared);
  CHECK(sum == 45);
  return Ok();
}
