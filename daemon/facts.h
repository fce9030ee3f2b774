#ifndef CLEW_DAEMON_FACTS_H_
#define CLEW_DAEMON_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/bundle_facts.h"
#include "common/result.h"

namespace clew::daemon {

inline constexpr size_t kManifestBytesMax = size_t{1} << 20;

// What admission has to know of a bundle.
struct BundleFacts {
  std::string program;  // base name of argv[0]
  int signal = 0;
  bool hang = false;
  bool failed = false;
  // Of who saved it: unit, process and time, not the kind.
  std::optional<Trigger> trigger;
};

// Reads `folder`/manifest.pb. kCorruptInput: not there, too large, or no such
// message.
[[nodiscard]] Result<BundleFacts> ReadFacts(const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_FACTS_H_
