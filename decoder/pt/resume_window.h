#ifndef CLEW_DECODER_PT_RESUME_WINDOW_H_
#define CLEW_DECODER_PT_RESUME_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/units.h"
#include "decoder/pt/packet_walk.h"

namespace clew::decoder {

// PT bytes that a decoder which begins at PSBs alone can begin with at another
// place: a made-up PSB+ with its address, what the trace has behind it up to
// the next PSB, the *seam*, and a made-up end at the seam's address. What runs
// until there is proven by the seam's PSB+.
//
// They are at the end of a buffer of fixed place, so that a decoder can be made
// once. To begin later before the same seam copies nothing. Not thread-safe.
class ResumeWindow {
 public:
  // No more bytes are copied; beyond, decoding goes on at the seam.
  static constexpr uint64_t kBytesMax = uint64_t{1} << 20;

  // `bytes` must outlive the window.
  explicit ResumeWindow(std::span<const std::byte> bytes);

  // Begins at `point`, which is not a PSB. `seam_ip` is the address in the PSB+
  // at `seam`. Without a seam, the bytes go on to their end. Returns false if
  // there are too many.
  bool Begin(const ResumePoint& point, std::optional<uint64_t> seam,
             std::optional<TraceeAddr> seam_ip);

  std::span<const std::byte> buffer() const { return buffer_; }
  // Of the made-up PSB in the buffer.
  uint64_t start() const { return start_; }
  std::optional<uint64_t> seam() const { return seam_; }
  // The made-up end is there.
  bool has_stop() const { return stop_bytes_ > 0; }
  // Where a place in the buffer is in the trace.
  uint64_t ToTrace(uint64_t offset) const;

 private:
  uint64_t copied_end() const { return buffer_.size() - stop_bytes_; }

  std::span<const std::byte> bytes_;
  std::vector<std::byte> buffer_;
  uint64_t start_ = 0;
  uint64_t begin_ = 0;  // in the trace, of what follows the made-up PSB+
  uint64_t end_ = 0;    // in the trace, of what is copied
  size_t stop_bytes_ = 0;
  std::optional<uint64_t> seam_;
  bool filled_ = false;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_RESUME_WINDOW_H_
