#include "daemon/source/try_sources.h"

#include <nlohmann/json.hpp>

namespace clew::daemon {

std::string TrySources(const OpenSource& open, const Config& config) {
  nlohmann::json said;
  for (const SourceKind kind : {SourceKind::kSideband, SourceKind::kPerf}) {
    Config wanted = config;
    wanted.source = kind;
    const auto source = open(wanted);
    said[std::string(ToString(kind))] = source ? "" : source.error().message;
  }
  return said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace clew::daemon
