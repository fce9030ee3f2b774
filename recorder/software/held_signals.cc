#include "recorder/software/held_signals.h"

#include <cstddef>

namespace clew::recorder {
namespace {

volatile sig_atomic_t g_came = 0;

void Note(int signal) { g_came = signal; }

}  // namespace

HeldSignals::HeldSignals() {
  g_came = 0;
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : kHeld) {
    sigaddset(&held, signal);
  }
  sigprocmask(SIG_BLOCK, &held, &mask_before_);
  struct sigaction note = {};
  note.sa_handler = Note;
  note.sa_mask = held;
  for (size_t i = 0; i < kHeld.size(); ++i) {
    sigaction(kHeld[i], nullptr, &actions_before_[i]);
    if (actions_before_[i].sa_handler != SIG_IGN) {
      sigaction(kHeld[i], &note, nullptr);
    }
  }
}

int HeldSignals::came() const { return g_came; }

void HeldSignals::Restore() const {
  for (size_t i = 0; i < kHeld.size(); ++i) {
    sigaction(kHeld[i], &actions_before_[i], nullptr);
  }
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace clew::recorder
