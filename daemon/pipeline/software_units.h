#ifndef CLEW_DAEMON_PIPELINE_SOFTWARE_UNITS_H_
#define CLEW_DAEMON_PIPELINE_SOFTWARE_UNITS_H_

#include <optional>
#include <string>

#include "common/result.h"
#include "daemon/control/protocol.h"
#include "daemon/loop/log.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/spool/spool.h"

namespace clew::daemon {

// Units that run under clewd-run: each records itself in software, into a
// partial bundle in incoming/, and has no trace that clewd could save.
class SoftwareUnits {
 public:
  // All outlive this. `proc` is where procfs is mounted.
  SoftwareUnits(Spool& spool, Pipeline& pipeline, Log& log, std::string proc)
      : spool_(spool), pipeline_(pipeline), log_(log), proc_(std::move(proc)) {}

  // The partial bundle of what `request` names; nullopt: it is recorded by
  // none of these.
  std::optional<std::string> Find(const SnapshotRequest& request) const;
  // Ends the recorded program of `partial` by SIGABRT, so that a bundle comes.
  // Returns its name. Fails with kInvalidArgument if the recording is not that
  // of one program of its user, and with kLimit if the program is about to
  // start.
  [[nodiscard]] Result<std::string> End(const std::string& partial);

 private:
  Spool& spool_;
  Pipeline& pipeline_;
  Log& log_;
  const std::string proc_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_SOFTWARE_UNITS_H_
