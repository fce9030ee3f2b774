#ifndef CLEW_RECORDER_QEMU_SIZE_LIMIT_H_
#define CLEW_RECORDER_QEMU_SIZE_LIMIT_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace clew::recorder {

// What the raw files of one recording take together, and whether they are kept.
// Once they are dropped (too large, or the disk refuses) they stay so: each
// RawFile that counts here gives back its bytes and takes no more, and the
// traced program goes on as if it were recorded. A trace whose end is missing
// says nothing of a failure, so nothing is kept of it.
//
// Any thread may call these.
class SizeLimit {
 public:
  // `bytes_max` 0: no limit. Keeps a descriptor of its own of standard error,
  // which the program may give another meaning.
  explicit SizeLimit(uint64_t bytes_max);
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;
  ~SizeLimit() { Abandon(); }

  void Add(uint64_t bytes);
  // Says so on standard error, the first time.
  void Drop(const std::string& why);
  bool dropped() const { return dropped_.load(std::memory_order_acquire); }
  // That were added.
  uint64_t bytes() const { return bytes_.load(); }
  // Why, for people; REQUIRES: dropped().
  const std::string& why() const { return why_; }
  // In a copy of the process: closes the descriptor.
  void Abandon();

 private:
  const uint64_t bytes_max_;
  int errors_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<bool> dropping_ = false;
  std::atomic<bool> dropped_ = false;
  std::string why_;  // written before dropped_
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_SIZE_LIMIT_H_
