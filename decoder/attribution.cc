#include "decoder/attribution.h"

#include "common/x86/opcode.h"

namespace clew::decoder {

// Slices that ended before are over.
void Attribution::SkipUntil(TscTicks time) {
  while (index_ + 1 < slices_.size() && slices_[index_].time.hi <= time) {
    ++index_;
    resume_ip_.reset();
  }
}

const Slice* Attribution::OnSync(TscTicks time) {
  if (time != TscTicks(0)) {
    SkipUntil(time);
  }
  return current();
}

const Slice* Attribution::OnEnter(const CoreEnter& enter) {
  if (slices_.empty()) {
    return nullptr;
  }
  if (enter.time.lo == TscTicks(0) && enter.time.hi == kTscUnknown) {
    ByOrder(enter);
    return &slices_[index_];
  }
  SkipUntil(enter.time.lo);
  // Time leaves a choice: stay if the thread goes on where it stopped, and
  // else take the next slice if it may have begun.
  const bool may_be_next = !exact_ && index_ + 1 < slices_.size() &&
                           resume_ip_ && !GoesOn(enter.ip) &&
                           (enter.time.hi != kTscUnknown || NextIsExec()) &&
                           slices_[index_ + 1].time.lo <= enter.time.hi &&
                           slices_[index_ + 1].time.lo >= enter.time.lo &&
                           slices_[index_].time.hi <= enter.time.hi;
  if (may_be_next) {
    ++index_;
    resume_ip_.reset();
  }
  return &slices_[index_];
}

// A CBR packet also comes in a PSB+. Software sources write one of its own
// behind it at each switch; elsewhere a switch may hide in it, unless the
// thread goes on where it stopped.
bool Attribution::IsAnew(const CoreEnter& enter) const {
  return enter.switched_on == SwitchedOn::kYes ||
         (enter.switched_on == SwitchedOn::kMaybe && !exact_ &&
          !GoesOn(enter.ip));
}

void Attribution::ByOrder(const CoreEnter& enter) {
  if (entered_ && IsAnew(enter) && index_ + 1 < slices_.size()) {
    ++index_;
    resume_ip_.reset();
  }
  entered_ = true;
}

// A thread's time that goes on in another slice was cut by an execve, of which
// the entry behind it does not go on where the thread stopped. REQUIRES: there
// is a next slice.
bool Attribution::NextIsExec() const {
  const Slice& slice = slices_[index_];
  const Slice& next = slices_[index_ + 1];
  return next.thread == slice.thread && next.time.lo <= slice.time.hi;
}

// Behind the last instruction, as after a system call, or at it, as after a
// fault or for an unfinished REP.
bool Attribution::GoesOn(TraceeAddr ip) const {
  return resume_ip_ && ip >= *resume_ip_ &&
         ip.as_int() - resume_ip_->as_int() <= x86::kInsnBytesMax;
}

void Attribution::OnBlock(const CoreBlock& block) { resume_ip_ = block.end_ip; }

}  // namespace clew::decoder
