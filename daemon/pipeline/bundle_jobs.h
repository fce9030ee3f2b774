#ifndef CLEW_DAEMON_PIPELINE_BUNDLE_JOBS_H_
#define CLEW_DAEMON_PIPELINE_BUNDLE_JOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/loop/child.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/spool/takeover.h"

namespace clew::daemon {

// The work on bundles by child processes. Destroyed while at work, they kill
// the child.

// `clewd renew`, so that nobody else has a file of the bundle open; redaction
// by clewd-redact; both must succeed; then `clew check`, without which a
// bundle is sent, too: it may be the one that shows our bug. Refused is what
// either calls corrupt.
class PrepareJob final : public BundleJob {
 public:
  struct Options {
    std::string clew;  // programs
    std::string clewd;
    std::string redact;
    std::string redaction;   // rules; empty: the built-in ones
    std::string journalctl;  // empty: the journal is not read
    ChildLimits limits;
  };
  explicit PrepareJob(Loop& loop);
  void SetOptions(Options options) { options_ = std::move(options); }
  Status Start(const std::string& folder,
               std::function<void(const JobEnd&)> done) override;

 private:
  Status AskJournal();
  void Asked(const ChildEnd& end);
  Status BeginRenewal();
  void Renewed(const ChildEnd& end);
  void Redacted(const ChildEnd& end);
  void Checked(const ChildEnd& end);

  Status Parse(const std::vector<std::string>& arguments,
               const std::string& input,
               std::function<void(const ChildEnd&)> ended);
  void Finish(const JobEnd& end);

  Loop& loop_;
  const Owner parser_;  // of the bundle, while it is parsed
  Options options_;
  std::unique_ptr<Child> child_;
  std::string folder_;
  std::function<void(const JobEnd&)> done_;
};

// `clew upload`.
class UploadJob final : public BundleJob {
 public:
  struct Options {
    std::string clew;
    std::string config;
    uint64_t time_ms = 0;
  };
  explicit UploadJob(Loop& loop) : loop_(loop) {}
  void SetOptions(Options options) { options_ = std::move(options); }
  Status Start(const std::string& folder,
               std::function<void(const JobEnd&)> done) override;

 private:
  Loop& loop_;
  Options options_;
  std::unique_ptr<Child> child_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_BUNDLE_JOBS_H_
