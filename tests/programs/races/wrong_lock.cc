// Two classes guard one list of prices with a lock of their own each.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 40;

std::vector<long> prices(4);
std::mutex buyers;
std::mutex sellers;
std::atomic<long> visits;

void Raise(std::mutex& mutex) {
  for (int i = 0; i < kRounds; ++i) {
    ++visits;
    const std::lock_guard lock(mutex);
    volatile long& price = prices[2];
    const long seen = price;  // race
    price = seen + 1;         // race
  }
}

}  // namespace

int main() {
  std::thread one(Raise, std::ref(buyers));
  std::thread other(Raise, std::ref(sellers));
  one.join();
  other.join();
  if (visits != 2 * kRounds || prices[2] != 2 * kRounds) {
    std::abort();
  }
  return 0;
}
