// A C++ program for the debugger: threads, strings, an exception that is caught
// and one that is not.
//
// Two clerks tear tickets off one roll. Each looks whether one is left and then
// takes it, under the lock both times but not in between, so the last ticket
// may be promised twice: std::string::at throws, nobody catches it, and
// std::terminate ends the program below a function of libstdc++.
#include <cstdio>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kTickets = 40;

class Roll {
 public:
  bool HasMore() {
    const std::lock_guard guard(lock_);
    return !tickets_.empty();
  }
  char Take() {
    const std::lock_guard guard(lock_);
    const char ticket = tickets_.at(tickets_.size() - 1);  // THROWS
    tickets_.pop_back();
    return ticket;
  }

 private:
  std::mutex lock_;
  std::string tickets_ = std::string(kTickets, 't');
};

std::string Serve(Roll& roll) {
  std::string sold;
  while (roll.HasMore()) {
    sold += roll.Take();
  }
  return sold;
}

void Clerk(Roll& roll, std::string& sold) { sold = Serve(roll); }

// What the command line may have: a number, or anything else for none.
std::size_t ExtraClerks(const std::string& text) {
  try {
    return std::stoul(text);
  } catch (const std::invalid_argument&) {
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t clerks = 2 + ExtraClerks(argc > 1 ? argv[1] : "none");
  Roll roll;
  std::vector<std::string> sold(clerks);
  std::vector<std::thread> threads;
  for (std::string& mine : sold) {
    threads.emplace_back(Clerk, std::ref(roll), std::ref(mine));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::size_t total = 0;
  for (const std::string& mine : sold) {
    total += mine.size();
  }
  std::printf("%zu of %zu tickets sold\n", total, kTickets);
  return 0;
}
