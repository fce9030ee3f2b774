#ifndef CLEW_COLLECTOR_WEB_WORKERS_H_
#define CLEW_COLLECTOR_WEB_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace clew::collector::web {

// Threads that do what is put in, in order. Thread-safe.
class Workers {
 public:
  explicit Workers(size_t threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();  // what was begun is done, the rest is dropped

  void Put(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_WORKERS_H_
