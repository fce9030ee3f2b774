#ifndef CLEW_DAEMON_SPOOL_FACTS_H_
#define CLEW_DAEMON_SPOOL_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/bundle_facts.h"
#include "common/result.h"

namespace clew::daemon {

// Of a manifest that the daemon itself reads, before it admits or prepares the
// bundle. Less than the collector takes: any user of this host may have written
// it, and the daemon has little memory.
inline constexpr size_t kAdmittedManifestBytesMax = size_t{1} << 20;

// What admission has to know of a bundle.
struct BundleFacts {
  std::string program;  // base name of argv[0]
  int signal = 0;
  bool hang = false;
  bool failed = false;
  // What the trigger of whoever saved it says: unit, process and time, not the
  // kind.
  std::optional<Trigger> trigger;
};

// Reads `folder`/manifest.pb. Fails with kCorruptInput if it does not exist, is
// larger than kAdmittedManifestBytesMax or is not a manifest.
[[nodiscard]] Result<BundleFacts> ReadFacts(const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_FACTS_H_
