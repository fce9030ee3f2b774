#ifndef CLEW_SOLVER_THREAD_ORDER_H_
#define CLEW_SOLVER_THREAD_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace clew::solver {

// Which moments of the threads of a run something puts before others: that a
// thread was created, joined, or took a lock that another one gave back. By
// vector clocks: Mattern, "Virtual time and global states of distributed
// systems", 1989. Not thread-safe.
class ThreadOrder {
 public:
  // A moment of a thread.
  struct Stamp {
    uint32_t thread = 0;
    uint32_t count = 0;
  };

  // Now.
  Stamp Of(size_t thread);
  // Whether something puts that moment before all that `thread` does next.
  bool IsBefore(const Stamp& stamp, size_t thread);

  // What `before` has done until now comes before what `after` does next.
  void Pass(size_t before, size_t after);
  // The same for whoever takes the lock next.
  void Give(size_t thread, uint64_t lock);
  void Take(size_t thread, uint64_t lock);

 private:
  using Clock = std::vector<uint32_t>;  // by thread
  Clock& ClockOf(size_t thread);
  static void Merge(const Clock& from, Clock& to);

  std::vector<Clock> clocks_;
  std::unordered_map<uint64_t, Clock> given_;  // by lock
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_THREAD_ORDER_H_
