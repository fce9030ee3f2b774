#ifndef CLEW_RECORDER_SOFTWARE_HELD_SIGNALS_H_
#define CLEW_RECORDER_SOFTWARE_HELD_SIGNALS_H_

#include <signal.h>

#include <array>

namespace clew::recorder {

// While it lives, SIGINT, SIGTERM and SIGHUP do not end this process: they are
// noted, so that it can tidy up first. One that is ignored stays ignored, and
// one that was blocked stays blocked. They come while the process waits with
// wait_mask() (ppoll(2)) and at no other time, so that none is missed between
// came() and the wait.
//
// One at a time, since actions of signals belong to the whole process.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  // Actions and mask are what they were before.
  ~HeldSignals() { Restore(); }

  // The signal that came last; 0: none did.
  int came() const;
  const sigset_t& wait_mask() const { return mask_before_; }
  // In a child too, which would hold them otherwise: async-signal-safe.
  void Restore() const;

 private:
  static constexpr std::array kHeld = {SIGINT, SIGTERM, SIGHUP};

  sigset_t mask_before_;
  std::array<struct sigaction, kHeld.size()> actions_before_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_HELD_SIGNALS_H_
