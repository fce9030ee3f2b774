#include "collector/jobs/worker_pool.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/check.h"

namespace clew::collector {

Result<std::unique_ptr<WorkerPool>> WorkerPool::Make(double retry_s,
                                                     double retry_s_max) {
  Fd stop_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop_fd.get() < 0) {
    return SystemError(errno, "cannot make an eventfd");
  }
  return std::unique_ptr<WorkerPool>(
      new WorkerPool(std::move(stop_fd), retry_s, retry_s_max));
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Add(std::function<Found()> work_on_one) {
  const std::lock_guard threads_lock(threads_mutex_);
  {
    const std::lock_guard lock(mutex_);
    ++workers_;
  }
  threads_.emplace_back(
      [this, work_on_one = std::move(work_on_one)] { Run(work_on_one); });
}

void WorkerPool::Wake() {
  const std::lock_guard lock(mutex_);
  ++wakes_;
  idle_workers_ = 0;
  changed_.notify_all();
}

void WorkerPool::Stop() {
  const std::lock_guard threads_lock(threads_mutex_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  CLEW_CHECK(eventfd_write(stop_fd_.get(), 1) == 0, "errno {}", errno);
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

bool WorkerPool::WaitIdle(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, Seconds(seconds),
                           [&] { return idle_workers_ == workers_; });
}

bool WorkerPool::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void WorkerPool::Retry(const std::function<bool()>& attempt) {
  Seconds wait = retry_;
  while (!attempt() && !stopping()) {
    WaitFor(wait);
    wait = Longer(wait);
  }
}

bool WorkerPool::BeginLook(uint64_t& wakes) const {
  const std::lock_guard lock(mutex_);
  wakes = wakes_;
  return !stopping_;
}

void WorkerPool::Run(const std::function<Found()>& work_on_one) {
  Seconds wait = retry_;
  for (uint64_t wakes = 0; BeginLook(wakes);) {
    switch (work_on_one()) {
      case Found::kWork:
        wait = retry_;
        break;
      case Found::kNothing:
        WaitForWork(wakes);
        break;
      case Found::kTrouble:
        WaitFor(wait);
        wait = Longer(wait);
        break;
    }
  }
}

void WorkerPool::WaitForWork(uint64_t wakes) {
  std::unique_lock lock(mutex_);
  if (wakes != wakes_ || stopping_) {
    return;
  }
  ++idle_workers_;
  changed_.notify_all();
  changed_.wait_for(lock, Seconds(kLook_s),
                    [&] { return wakes != wakes_ || stopping_; });
  if (wakes == wakes_) {
    --idle_workers_;  // Wake did not
  }
}

void WorkerPool::WaitFor(Seconds wait) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait, [&] { return stopping_; });
}

WorkerPool::Seconds WorkerPool::Longer(Seconds wait) const {
  return std::min(2 * wait, retry_max_);
}

}  // namespace clew::collector
