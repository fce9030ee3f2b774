#ifndef CLEW_DAEMON_FACTS_H_
#define CLEW_DAEMON_FACTS_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew::daemon {

inline constexpr size_t kManifestBytesMax = size_t{1} << 20;

// What admission has to know of a bundle.
struct BundleFacts {
  std::string program;  // base name of argv[0]
  int signal = 0;
  bool hang = false;
  bool failed = false;
  bool has_trigger = false;
};

// Reads `folder`/manifest.pb. kCorruptInput: not there, too large, or no such
// message.
[[nodiscard]] Result<BundleFacts> ReadFacts(const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_FACTS_H_
