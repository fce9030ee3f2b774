#include "cli/stop_signals.h"

namespace clew::cli {
namespace {

volatile std::sig_atomic_t g_stop = 0;

void Stop(int) { g_stop = 1; }

}  // namespace

const volatile std::sig_atomic_t& CatchStopSignals() {
  struct sigaction stop = {};
  stop.sa_handler = Stop;
  sigaction(SIGINT, &stop, nullptr);
  sigaction(SIGTERM, &stop, nullptr);
  return g_stop;
}

}  // namespace clew::cli
