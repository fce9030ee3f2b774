#ifndef CLEW_RECORDER_PT_ENCODER_PT_SINK_H_
#define CLEW_RECORDER_PT_ENCODER_PT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clew::recorder {

// A sink must always offer at least this much room: more than any one event
// writes (a burst of kMtcBurstMax MTC packets, a PSB+ and a TIP).
inline constexpr size_t kSinkRoomMinBytes = 256;

// Where the bytes of one PT stream go. The stream is what was used of each
// span, one after another.
class PtSink {
 public:
  virtual ~PtSink() = default;
  // Keeps the first `used_bytes` bytes of the span returned last (0 at the
  // first call) and returns room for more: at least kSinkRoomMinBytes bytes,
  // valid until the next call. A sink that is full returns scratch memory and
  // reports the loss on a way of its own; it does not fail.
  virtual std::span<uint8_t> Exchange(size_t used_bytes) = 0;
};

// Keeps the whole stream in memory. For tests and short recordings.
class VectorSink final : public PtSink {
 public:
  std::span<uint8_t> Exchange(size_t used_bytes) override;
  // What was exchanged so far: everything after CoreEncoder::Flush().
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> room_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_PT_SINK_H_
