#ifndef CLEW_DAEMON_PIPELINE_INCOMING_FOLDER_H_
#define CLEW_DAEMON_PIPELINE_INCOMING_FOLDER_H_

#include <functional>

#include "common/os/fd.h"
#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/counters.h"
#include "daemon/loop/incidents.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/spool/spool.h"

namespace clew::daemon {

// The spool's folder to which everyone may write: tells when something came,
// and keeps out what does not belong there or is too much for one user.
class IncomingFolder {
 public:
  struct Parts {
    Loop& loop;
    Clock& clock;
    Spool& spool;
    Log& log;
    Counters& counters;
    Incidents& incidents;
  };
  // All outlive this.
  IncomingFolder(const Parts& parts, const Config& config)
      : parts_(parts), config_(config) {}
  IncomingFolder(const IncomingFolder&) = delete;
  IncomingFolder& operator=(const IncomingFolder&) = delete;
  ~IncomingFolder();

  // From now on `came` is called when something was moved or made there.
  [[nodiscard]] Status Watch(std::function<void()> came);
  // Removes what writers left that died, what is beyond
  // Config::incoming_user_bytes, and old files of other names.
  void CleanUp();

 private:
  Parts parts_;
  const Config& config_;
  std::function<void()> came_;
  Fd inotify_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_INCOMING_FOLDER_H_
