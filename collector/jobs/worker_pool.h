#ifndef CLEW_COLLECTOR_JOBS_WORKER_POOL_H_
#define CLEW_COLLECTOR_JOBS_WORKER_POOL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/os/fd.h"
#include "common/result.h"

namespace clew::collector {

// What came of looking for work.
enum class Found : uint8_t { kNothing, kWork, kTrouble };

// Threads that each do one thing over and over: at once while there is work,
// again when woken (or after kLook_s) when there was none, after a wait that
// doubles when there was trouble. Thread-safe.
class WorkerPool {
 public:
  static constexpr double kLook_s = 60;
  // kSystem.
  [[nodiscard]] static Result<std::unique_ptr<WorkerPool>> Make(
      double retry_s, double retry_s_max);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();  // stops

  // One more thread. `work_on_one` must be callable until Stop has returned.
  void Add(std::function<Found()> work_on_one);
  // There may be work. Cheap.
  void Wake();
  // Waits for what is being worked on. Twice is once.
  void Stop();
  // Waits until every thread found nothing since the last Wake; false after
  // `seconds`.
  bool WaitIdle(double seconds);

  bool stopping() const;
  // Readable from Stop on, as long as the pool lives.
  int stop_fd() const { return stop_fd_.get(); }
  // Calls `attempt` until it returns true, or the pool stops, but once at
  // least; with the waits of trouble in between.
  void Retry(const std::function<bool()>& attempt);

 private:
  using Seconds = std::chrono::duration<double>;
  WorkerPool(Fd stop_fd, double retry_s, double retry_s_max)
      : stop_fd_(std::move(stop_fd)),
        retry_(retry_s),
        retry_max_(retry_s_max) {}

  void Run(const std::function<Found()>& work_on_one);
  // Until Wake is called, or was since `wakes` was read.
  void WaitForWork(uint64_t wakes);
  void WaitFor(Seconds wait);
  Seconds Longer(Seconds wait) const;
  // False: stop. `wakes` is for WaitForWork.
  bool BeginLook(uint64_t& wakes) const;

  const Fd stop_fd_;  // an eventfd
  const Seconds retry_;
  const Seconds retry_max_;

  mutable std::mutex mutex_;  // for all below but threads_
  std::condition_variable changed_;
  uint64_t wakes_ = 0;
  size_t workers_ = 0;
  size_t idle_workers_ = 0;  // found nothing since the last Wake
  bool stopping_ = false;

  std::mutex threads_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_JOBS_WORKER_POOL_H_
