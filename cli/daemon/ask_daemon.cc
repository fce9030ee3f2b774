#include "cli/daemon/ask_daemon.h"

#include <nlohmann/json.hpp>

#include "common/check.h"
#include "daemon/config/paths.h"
#include "daemon/control/control.h"

namespace clew::cli {
namespace {

constexpr uint64_t kAnswerMs = 10'000;

}  // namespace

Result<Json> AskDaemon(const AskOptions& options,
                       const daemon::Request& request) {
  CLEW_ASSIGN_OR_RETURN(reply, daemon::Ask(daemon::Paths(options.root).socket,
                                           request, kAnswerMs));
  Json json = Json::parse(reply, nullptr, false);
  CLEW_CHECK(json.is_object(), "a reply that is none: {:?}", reply);
  return json;
}

int AskDaemon(const AskOptions& options, const daemon::Request& request,
              void (*show)(const Json&)) {
  const auto reply = AskDaemon(options, request);
  if (!reply) {
    return ReportError(reply.error());
  }
  if (options.json) {
    PrintJson(*reply);
  } else {
    show(*reply);
  }
  return kExitOk;
}

}  // namespace clew::cli
