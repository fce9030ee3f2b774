#include "cli/ask_daemon.h"

#include <nlohmann/json.hpp>

#include "common/check.h"
#include "daemon/control.h"
#include "daemon/paths.h"

namespace clew::cli {
namespace {

constexpr uint64_t kAnswerMs = 10'000;

}  // namespace

int AskDaemon(const AskOptions& options, const daemon::Request& request,
              void (*show)(const Json&)) {
  const auto reply =
      daemon::Ask(daemon::Paths(options.root).socket, request, kAnswerMs);
  if (!reply) {
    return ReportError(reply.error());
  }
  const Json json = Json::parse(*reply, nullptr, false);
  CLEW_CHECK(json.is_object(), "a reply that is none: {:?}", *reply);
  if (options.json) {
    PrintJson(json);
  } else {
    show(json);
  }
  return kExitOk;
}

}  // namespace clew::cli
