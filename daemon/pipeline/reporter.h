#ifndef CLEW_DAEMON_PIPELINE_REPORTER_H_
#define CLEW_DAEMON_PIPELINE_REPORTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/loop/child.h"
#include "daemon/loop/loop.h"

namespace clew::daemon {

// Has a child tell the collector how this host does, again and again: the first
// time within half a period, then with pauses of three to five quarters of it,
// by chance, so that not all hosts of a fleet call at one moment. Destroyed
// while a child runs, it kills it. Not thread-safe.
class Reporter {
 public:
  static constexpr uint64_t kChildMsMax = 60'000;
  struct Options {
    std::vector<std::string> arguments;  // [0]: a path
    uint64_t period_ms = 0;              // 0: never
    bool operator==(const Options&) const = default;
  };

  // `below`: a random number below its argument, which is not 0. `ended` tells
  // of each report: why it failed; empty: it did not. `loop` must outlive it.
  Reporter(Loop& loop, std::function<uint64_t(uint64_t)> below,
           std::function<void(const std::string& why)> ended);
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter();

  // Others begin anew, the same change nothing.
  void SetOptions(Options options);

 private:
  void After(uint64_t delay_ms);
  void Report();

  Loop& loop_;
  const std::function<uint64_t(uint64_t)> below_;
  const std::function<void(const std::string& why)> ended_;
  Options options_;
  Loop::TimerId timer_ = 0;  // 0: none
  std::unique_ptr<Child> child_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_REPORTER_H_
