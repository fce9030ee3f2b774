#ifndef CLEW_DAEMON_SOURCE_SOURCE_KEEPER_H_
#define CLEW_DAEMON_SOURCE_SOURCE_KEEPER_H_

#include <functional>
#include <memory>
#include <string>

#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/loop/incidents.h"
#include "daemon/loop/log.h"
#include "daemon/loop/loop.h"
#include "daemon/source/source.h"

namespace clew::daemon {

using OpenSource =
    std::function<Result<std::unique_ptr<PtSource>>(const Config&)>;

// The source of trace that the configuration asks for. One that cannot be
// opened is tried again every Config::source_retry_s.
class SourceKeeper {
 public:
  struct Parts {
    Loop& loop;
    Log& log;
    Incidents& incidents;
    OpenSource open;
  };
  // `config` is asked whenever a source is opened. It and the parts outlive
  // this. `changed` is called when there is another source, or none.
  SourceKeeper(Parts parts, const Config& config,
               std::function<void()> changed);
  SourceKeeper(const SourceKeeper&) = delete;
  SourceKeeper& operator=(const SourceKeeper&) = delete;
  ~SourceKeeper();

  // nullptr: there is none, and error() says why, unless none is asked for.
  PtSource* source() const { return source_.get(); }
  const std::string& error() const { return error_; }

  // Closes what is open first. REQUIRES: nothing is being saved; so does
  // RunPeriodicWork, which follows CPUs that come and go.
  void Open();
  void RunPeriodicWork();
  // Where no source is asked for, opens the sideband for as long as a save
  // takes: a core dump is worth a bundle, and the sideband brings its mappings,
  // and so the images without which it cannot be read.
  [[nodiscard]] Status OpenForOneSave();
  bool is_for_one_save() const { return for_one_save_; }
  // The configuration asks for another source. `saving`: something is being
  // saved, so that it is opened when SavesEnded is called.
  void Reopen(bool saving);
  bool waits_to_reopen() const { return waits_to_reopen_; }
  // No save is at work any more.
  void SavesEnded();

 private:
  Parts parts_;
  const Config& config_;
  const std::function<void()> changed_;
  std::unique_ptr<PtSource> source_;
  std::string error_;
  bool for_one_save_ = false;
  bool waits_to_reopen_ = false;
  Loop::TimerId retry_ = 0;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_SOURCE_KEEPER_H_
