#include "daemon/pipeline/bundle_jobs.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <utility>

#include "daemon/spool/facts.h"
#include "daemon/spool/journal.h"

namespace clew::daemon {
namespace {

// By clew's exit codes (common/result.h). What the disk, the network or the
// collector's certificate cause is kRetry.
JobEnd::What EndOfUpload(int exit_status) {
  switch (exit_status) {
    case kExitOk:
      return JobEnd::What::kDone;
    case kExitCorrupt:
      return JobEnd::What::kRefuse;
    case kExitUsage:
    case kExitLimit:
      return JobEnd::What::kDeclined;
    default:
      return JobEnd::What::kRetry;
  }
}

// Has neither other processes nor files: packages make it (sysusers.d).
constexpr const char* kParserUser = "clew-parser";
// Linux, Documentation/admin-guide/sysctl/fs.rst, "overflowgid & overflowuid":
// nobody.
constexpr Owner kNobody = {65534, 65534};

// As whom bundles of strangers are parsed: never as root.
Owner FindParser() {
  if (geteuid() != 0) {
    return {geteuid(), getegid()};
  }
  const passwd* user = getpwnam(kParserUser);
  return user == nullptr ? kNobody : Owner{user->pw_uid, user->pw_gid};
}

// Of a child without which the bundle cannot go on.
JobEnd Failed(std::string_view what, const ChildEnd& end) {
  return {end.exit_status == kExitCorrupt ? JobEnd::What::kRefuse
                                          : JobEnd::What::kRetry,
          fmt::format("{}: {}", what, end.Why())};
}

}  // namespace

PrepareJob::PrepareJob(Loop& loop) : loop_(loop), parser_(FindParser()) {}

Status PrepareJob::Start(const std::string& folder,
                         std::function<void(const JobEnd&)> done) {
  folder_ = folder;
  done_ = std::move(done);
  return AskJournal();
}

// First, since a journal has no room for ever.
Status PrepareJob::AskJournal() {
  CLEW_ASSIGN_OR_RETURN(facts, ReadFacts(folder_));
  DropJournal(folder_);
  if (options_.journalctl.empty() || !facts.trigger ||
      (facts.trigger->process <= 0 && facts.trigger->unit.empty())) {
    return BeginRenewal();
  }
  constexpr ChildLimits kLimits = {.cpu_s = 10, .time_ms = 10'000};
  CLEW_ASSIGN_OR_RETURN(
      child,
      Child::Start(loop_, JournalCommand(options_.journalctl, *facts.trigger),
                   kLimits, [this](const ChildEnd& end) { Asked(end); }));
  child_ = std::move(child);
  return {};
}

// A bundle is worth keeping without it.
void PrepareJob::Asked(const ChildEnd& end) {
  const bool told = end.exit_status == kExitOk;
  Status next = KeepJournal(folder_, told ? end.output : "",
                            told ? "the journal has no line of it" : end.Why());
  if (next) {
    next = BeginRenewal();
  }
  if (!next) {
    Finish({JobEnd::What::kRetry, next.error().message});
  }
}

Status PrepareJob::BeginRenewal() {
  CLEW_ASSIGN_OR_RETURN(
      child,
      Child::Start(
          loop_,
          {options_.clewd, "renew", folder_, fmt::to_string(parser_.user),
           fmt::to_string(parser_.group)},
          options_.limits, [this](const ChildEnd& end) { Renewed(end); }));
  child_ = std::move(child);
  return {};
}

// A confined child in the bundle's folder.
Status PrepareJob::Parse(const std::vector<std::string>& arguments,
                         const std::string& input,
                         std::function<void(const ChildEnd&)> ended) {
  const ChildCell cell = {.folder = folder_,
                          .input = input,
                          .user = parser_.user,
                          .group = parser_.group};
  CLEW_ASSIGN_OR_RETURN(child, Child::Start(loop_, arguments, options_.limits,
                                            std::move(ended), cell));
  child_ = std::move(child);
  return {};
}

void PrepareJob::Renewed(const ChildEnd& end) {
  if (end.exit_status != kExitOk) {
    Finish(Failed("copy", end));
    return;
  }
  std::vector<std::string> arguments = {options_.redact, "."};
  if (!options_.redaction.empty()) {
    arguments.push_back("-");  // only we may be able to read them
  }
  const Status started =
      Parse(arguments, options_.redaction,
            [this](const ChildEnd& redacted) { Redacted(redacted); });
  if (!started) {
    Finish({JobEnd::What::kRetry, started.error().message});
  }
}

void PrepareJob::Redacted(const ChildEnd& end) {
  if (end.exit_status != kExitOk) {
    Finish(Failed("redaction", end));
    return;
  }
  const Status started =
      Parse({options_.clew, "check", "--json", "--write", "."}, "",
            [this](const ChildEnd& checked) { Checked(checked); });
  if (!started) {
    Finish({JobEnd::What::kRetry, started.error().message});
  }
}

void PrepareJob::Checked(const ChildEnd& end) {
  if (end.exit_status == kExitOk || end.exit_status == kExitFinding) {
    Finish({});
    return;
  }
  Finish({end.exit_status == kExitCorrupt ? JobEnd::What::kRefuse
                                          : JobEnd::What::kUnchecked,
          "check: " + end.Why()});
}

// The bundle is ours again. Its parser has ended, and so has nothing open.
void PrepareJob::Finish(const JobEnd& end) {
  const Status taken = TakeOver(folder_);
  if (taken) {
    done_(end);
    return;
  }
  done_({taken.error().code == ErrorCode::kInvalidArgument
             ? JobEnd::What::kRefuse
             : JobEnd::What::kRetry,
         taken.error().message});
}

Status UploadJob::Start(const std::string& folder,
                        std::function<void(const JobEnd&)> done) {
  const ChildLimits limits{.time_ms = options_.time_ms};
  CLEW_ASSIGN_OR_RETURN(
      child,
      Child::Start(
          loop_,
          {options_.clew, "upload", "--client-config", options_.config, folder},
          limits, [done = std::move(done)](const ChildEnd& end) {
            const auto what = EndOfUpload(end.exit_status);
            done({what, what == JobEnd::What::kDone ? "" : end.Why()});
          }));
  child_ = std::move(child);
  return {};
}

}  // namespace clew::daemon
