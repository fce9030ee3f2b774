#ifndef CLEW_DAEMON_SOURCE_TRY_SOURCES_H_
#define CLEW_DAEMON_SOURCE_TRY_SOURCES_H_

#include <string>

#include "daemon/config/config.h"
#include "daemon/source/source_keeper.h"

namespace clew::daemon {

// `clewd --try-sources`: opens each source once as the daemon would, with the
// rings of `config`, and closes it. A line of JSON, for `clew doctor`: an
// object with a member for each source, empty or why it cannot be opened.
std::string TrySources(const OpenSource& open, const Config& config);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_TRY_SOURCES_H_
