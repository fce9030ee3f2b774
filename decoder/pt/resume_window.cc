#include "decoder/pt/resume_window.h"

#include <algorithm>
#include <cstring>

#include "decoder/pt/libipt.h"

namespace clew::decoder {

ResumeWindow::ResumeWindow(std::span<const std::byte> bytes)
    : bytes_(bytes),
      buffer_(kStartBytes + std::min<uint64_t>(bytes.size(), kBytesMax) +
              kStopBytes) {}

bool ResumeWindow::Begin(const ResumePoint& point, std::optional<uint64_t> seam,
                         std::optional<TraceeAddr> seam_ip) {
  const uint64_t end = seam.value_or(bytes_.size());
  if (end - point.end > kBytesMax) {
    return false;
  }
  // A window begins behind the one before it.
  const bool same = filled_ && end == end_;
  const bool has_stop = seam && seam_ip;
  stop_bytes_ = has_stop ? kStopBytes : 0;
  seam_ = seam;
  begin_ = point.end;
  end_ = end;
  const uint64_t at = copied_end() - (end - point.end);
  if (!same) {
    std::memcpy(buffer_.data() + at, bytes_.data() + point.end,
                end - point.end);
    filled_ = true;
    if (has_stop) {
      WriteStop(buffer_.data() + copied_end(), *seam_ip);
    }
  }
  start_ = at - kStartBytes;
  WriteStart(buffer_.data() + start_, point.ip, point.code_bits);
  return true;
}

uint64_t ResumeWindow::ToTrace(uint64_t offset) const {
  const uint64_t first = start_ + kStartBytes;
  return std::min(end_, begin_ + (std::max(offset, first) - first));
}

}  // namespace clew::decoder
