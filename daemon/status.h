#ifndef CLEW_DAEMON_STATUS_H_
#define CLEW_DAEMON_STATUS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/loop/counters.h"
#include "daemon/source/source.h"
#include "daemon/spool/spool.h"
#include "daemon/units/units.h"

namespace clew::daemon {

// Of the last bundle that was saved, and the longest so far.
struct SaveTimes {
  uint64_t first_byte_us = 0;
  uint64_t first_byte_us_max = 0;
  uint64_t saved_us = 0;
  uint64_t saved_us_max = 0;
};

// What `clew daemon status` shows.
struct DaemonStatus {
  std::string state;  // "off", "recording", "saving"
  std::string version;
  uint64_t uptime_s = 0;
  std::string source_kind;
  std::string source_error;  // why it is off; empty: it is not
  SourceStatus source;
  SaveTimes times;
  std::map<Stage, SpoolUse> spool;
  SpoolUse junk;            // in incoming/, no bundles
  std::string units_error;  // why units are not watched; empty: they are
  // What is in stuck/, oldest first, each with its reason.
  std::vector<std::pair<std::string, std::string>> stuck;
  std::vector<std::string> writing;  // bundles of units that are recorded now
  uint64_t spool_bytes = 0;
  uint64_t spool_bytes_max = 0;
  uint64_t disk_free_bytes = 0;
  bool upload = false;
  bool preparing = false;
  bool uploading = false;
  uint64_t retry_in_ms = 0;
  uint64_t clients_refused = 0;
  Counters counters;
  LastError last_error;
};

// The replies of the control protocol, with the newline.
std::string FormatStatus(const DaemonStatus& status);
std::string FormatUnits(const std::vector<UnitReport>& watched,
                        const std::vector<std::string>& writing);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_STATUS_H_
