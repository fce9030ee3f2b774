#ifndef CLEW_RECORDER_TRACER_FREE_TOLD_STREAM_H_
#define CLEW_RECORDER_TRACER_FREE_TOLD_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "recorder/tracer/shared_layout.h"

namespace clew::tracer {

// A system call that a thread told of, with all that belongs to it.
struct CallItem {
  ToldCall call;
  std::vector<MemoryWrite> writes;
  std::string path;  // of the file that it mapped; empty: none
};
struct SignalItem {
  ToldSignal signal;
  std::vector<MemoryWrite> writes;
};
using ToldItem = std::variant<CallItem, SignalItem, ToldInsn>;

// Takes the stream of one thread (shared_layout.h, "What came in") apart. What
// it reads may be foul: then it fails with kCorruptInput, and says what is.
class ToldStream {
 public:
  // The next bytes of it. Nothing may be called when that has failed.
  [[nodiscard]] Status Take(std::span<const std::byte> bytes);
  // Returns the items that are complete by now.
  [[nodiscard]] std::vector<ToldItem> Items();

 private:
  [[nodiscard]] Status TakeItem(ToldKind kind,
                                std::span<const std::byte> bytes);
  [[nodiscard]] Status TakeWrite(std::span<const std::byte> bytes);

  std::vector<std::byte> rest_;  // of an item that is not complete
  std::vector<MemoryWrite> writes_;
  uint64_t write_bytes_ = 0;
  std::string path_;
  std::vector<ToldItem> items_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_TOLD_STREAM_H_
