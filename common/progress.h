#ifndef CLEW_COMMON_PROGRESS_H_
#define CLEW_COMMON_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace clew {

// One line on a terminal for work that takes over two seconds:
//
//   solve   41%   12.3 M insn   8.1 M insn/s   ETA 3 s
//
// Library code calls Update as often as it likes; what is shown and where is
// the program's business.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // `total` is 0 where it is not known.
  virtual void Update(uint64_t done, uint64_t total) = 0;
};

// Draws on stderr if that is a terminal, after two seconds, at most ten times a
// second; erases its line when destroyed. Not thread-safe.
class TerminalProgress final : public ProgressSink {
 public:
  // `unit` follows the figures, for example "insn".
  TerminalProgress(std::string label, std::string unit);
  ~TerminalProgress() override;
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  void Update(uint64_t done, uint64_t total) override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  std::string unit_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

// "12.3 M", "981", "4.0 G".
std::string WithMagnitude(double value);

}  // namespace clew

#endif  // CLEW_COMMON_PROGRESS_H_
