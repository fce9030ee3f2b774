#include "common/text/signal_text.h"

#include <fmt/format.h>
#include <string.h>

namespace clew {

std::string SignalText(int signal) {
  const char* const name = sigabbrev_np(signal);
  return fmt::format("signal {} (SIG{})", signal, name != nullptr ? name : "?");
}

}  // namespace clew
