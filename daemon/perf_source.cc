#include "daemon/perf_source.h"

namespace clew::daemon {

Result<std::unique_ptr<PtSource>> OpenPerfSource(const Config& config) {
  return Unsupported("source {} is not built", ToString(config.source));
}

}  // namespace clew::daemon
