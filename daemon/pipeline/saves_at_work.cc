#include "daemon/pipeline/saves_at_work.h"

#include <algorithm>

#include "daemon/pipeline/admission.h"

namespace clew::daemon {

bool SavesAtWork::IsFullFor(uint32_t user, uint64_t most) const {
  const auto own = static_cast<uint64_t>(std::ranges::count_if(
      saves_, [&](const auto& save) { return save.second.user == user; }));
  return saves_.size() >= most || own >= ShareOf(user, most);
}

uint64_t SavesAtWork::bytes_max() const {
  uint64_t bytes = 0;
  for (const auto& [id, save] : saves_) {
    bytes += save.bytes_max;
  }
  return bytes;
}

}  // namespace clew::daemon
