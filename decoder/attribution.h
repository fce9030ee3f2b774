#ifndef CLEW_DECODER_ATTRIBUTION_H_
#define CLEW_DECODER_ATTRIBUTION_H_

#include <cstdint>
#include <optional>
#include <span>

#include "common/stream.h"
#include "decoder/pt/core_decoder.h"

namespace clew::decoder {

// Tells which slice of a core a stretch of user mode (from CoreEnter to
// CoreLeave) belongs to. A thread leaves user mode before it is switched out,
// and another enters it after it was switched in, so stretches never cross a
// switch, and they and the slices are in the same order. Time chooses. It
// leaves no choice where a TSC and a CBR packet come with each switch, as
// software sources make it (`exact`); on hardware, where it may, a thread goes
// on where it stopped.
class Attribution {
 public:
  // `slices`, in order, are one core's, and must outlive the object.
  Attribution(std::span<const Slice> slices, bool exact)
      : slices_(slices), exact_(exact) {}

  // The slice of what follows; nullptr if the core has none.
  const Slice* OnEnter(const CoreEnter& enter);
  // Decoding begins at a PSB, in user mode or not: nothing to come is before
  // `time`. The slice of what follows, unless OnEnter comes next.
  const Slice* OnSync(TscTicks time);
  // A block of the current stretch.
  void OnBlock(const CoreBlock& block);
  // After a gap anything may run.
  void OnGap() { resume_ip_.reset(); }

  const Slice* current() const {
    return slices_.empty() ? nullptr : &slices_[index_];
  }
  // Slices of this core before this one get nothing more.
  uint32_t index() const { return static_cast<uint32_t>(index_); }

 private:
  void SkipUntil(TscTicks time);
  bool GoesOn(TraceeAddr ip) const;
  bool NextIsExec() const;
  bool IsAnew(const CoreEnter& enter) const;
  void ByOrder(const CoreEnter& enter);

  std::span<const Slice> slices_;
  bool exact_;
  size_t index_ = 0;
  bool entered_ = false;  // at least once
  // Where the last block ended: start of its last instruction.
  std::optional<TraceeAddr> resume_ip_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ATTRIBUTION_H_
