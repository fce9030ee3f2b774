#include "daemon/works.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace clew::daemon {
namespace {

// By clew's exit codes (common/result.h). What the disk, the network or the
// collector's certificate cause is kRetry.
WorkEnd::What EndOfUpload(int exit_status) {
  switch (exit_status) {
    case kExitOk:
      return WorkEnd::What::kDone;
    case kExitCorrupt:
      return WorkEnd::What::kRefuse;
    case kExitUsage:
    case kExitLimit:
      return WorkEnd::What::kDeclined;
    default:
      return WorkEnd::What::kRetry;
  }
}

// Of a child without which the bundle cannot go on.
WorkEnd Failed(std::string_view what, const ChildEnd& end) {
  return {end.exit_status == kExitCorrupt ? WorkEnd::What::kRefuse
                                          : WorkEnd::What::kRetry,
          fmt::format("{}: {}", what, end.Why())};
}

}  // namespace

Status PrepareWork::Start(const std::string& folder,
                          std::function<void(const WorkEnd&)> done) {
  folder_ = folder;
  done_ = std::move(done);
  CLEW_ASSIGN_OR_RETURN(
      child,
      Child::Start(loop_,
                   {options_.clewd, "renew", folder, fmt::to_string(geteuid()),
                    fmt::to_string(getegid())},
                   options_.limits,
                   [this](const ChildEnd& end) { Renewed(end); }));
  child_ = std::move(child);
  return {};
}

void PrepareWork::Renewed(const ChildEnd& end) {
  if (end.exit_status != kExitOk) {
    done_(Failed("copy", end));
    return;
  }
  std::vector<std::string> arguments = {options_.clewd, "redact", folder_};
  if (!options_.redaction.empty()) {
    arguments.push_back(options_.redaction);
  }
  auto child =
      Child::Start(loop_, arguments, options_.limits,
                   [this](const ChildEnd& redacted) { Redacted(redacted); });
  if (!child) {
    done_({WorkEnd::What::kRetry, child.error().message});
    return;
  }
  child_ = std::move(*child);
}

void PrepareWork::Redacted(const ChildEnd& end) {
  if (end.exit_status != kExitOk) {
    done_(Failed("redaction", end));
    return;
  }
  auto child = Child::Start(
      loop_, {options_.clew, "check", "--json", "--write", folder_},
      options_.limits, [this](const ChildEnd& checked) { Checked(checked); });
  if (!child) {
    done_({WorkEnd::What::kRetry, child.error().message});
    return;
  }
  child_ = std::move(*child);
}

void PrepareWork::Checked(const ChildEnd& end) {
  if (end.exit_status == kExitOk || end.exit_status == kExitFinding) {
    done_({});
    return;
  }
  done_({end.exit_status == kExitCorrupt ? WorkEnd::What::kRefuse
                                         : WorkEnd::What::kUnchecked,
         "check: " + end.Why()});
}

Status UploadWork::Start(const std::string& folder,
                         std::function<void(const WorkEnd&)> done) {
  const ChildLimits limits{.time_ms = options_.time_ms};
  CLEW_ASSIGN_OR_RETURN(
      child,
      Child::Start(
          loop_,
          {options_.clew, "upload", "--client-config", options_.config, folder},
          limits, [done = std::move(done)](const ChildEnd& end) {
            const auto what = EndOfUpload(end.exit_status);
            done({what, what == WorkEnd::What::kDone ? "" : end.Why()});
          }));
  child_ = std::move(child);
  return {};
}

}  // namespace clew::daemon
