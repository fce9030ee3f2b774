#ifndef CLEW_DAEMON_CONFIG_CONFIG_H_
#define CLEW_DAEMON_CONFIG_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace clew::daemon {

enum class SourceKind : uint8_t {
  kNone,      // bundles of software units alone
  kPerf,      // Intel PT
  kSideband,  // switches and mmaps without PT
};
std::string_view ToString(SourceKind kind);

// How `clewd-run` records a unit.
enum class UnitTracer : uint8_t {
  kTurns,  // one thread at a time, all of the run
  kFree,   // all threads at once, all of the run
  kRing,   // likewise, its end
};
std::string_view ToString(UnitTracer tracer);

// A service of systemd that is watched: section [unit NAME.service]; [unit
// NAME] is taken for it, with a warning.
struct WatchedUnit {
  std::string name;        // ends in ".service"
  bool on_failure = true;  // failure = yes: save when it fails
  // hang = 60s: save when it gave no sign of life for so long; 0: never.
  uint64_t hang_s = 0;
  // heartbeat = /run/a/alive: the sign is that the file is touched. Empty: that
  // the unit's cgroup used CPU time.
  std::string heartbeat;
  UnitTracer tracer = UnitTracer::kTurns;    // tracer = turns, free or ring
  uint64_t ring_bytes = uint64_t{16} << 20;  // ring = 16M, of kRing
  bool operator==(const WatchedUnit&) const = default;
};
inline constexpr size_t kUnitsMax = 64;
inline constexpr size_t kSavesMax = 8;

// /etc/clew/clewd.conf; deploy's example explains each key to people. Defaults
// are those of a key that is not there.
struct Config {
  SourceKind source = SourceKind::kNone;
  bool sideband_only = false;              // save also what has no PT
  uint64_t pt_buffer_bytes = 4 << 20;      // per CPU, a power of two
  uint64_t data_buffer_bytes = 512 << 10;  // per CPU, a power of two
  uint64_t source_retry_s = 60;

  uint64_t spool_bytes = uint64_t{10} << 30;
  uint64_t disk_free_bytes = uint64_t{1} << 30;  // left to others
  uint64_t core_bytes = uint64_t{4} << 30;       // of one core dump
  uint64_t software_bytes = uint64_t{2} << 30;   // of one software recording
  // In incoming/, of one user who is not the one that clewd runs as.
  uint64_t incoming_user_bytes = uint64_t{6} << 30;

  uint64_t saves = 4;             // at once; a user who is not root has half
  uint64_t rate_failure = 2;      // bundles of one program and signal,
  uint64_t rate_all = 20;         // and of all,
  uint64_t rate_period_s = 3600;  // within this time
  uint64_t merge_s = 10;  // triggers of one process that are one failure

  std::string clew = "/usr/bin/clew";
  std::string redaction;  // a file of rules; empty: the built-in ones
  std::string journalctl = "/usr/bin/journalctl";  // empty: no journal
  uint64_t check_s = 300;
  uint64_t check_memory_bytes = uint64_t{2} << 30;

  bool upload = false;
  std::string upload_config = "/etc/clew/client.conf";
  uint64_t upload_s = 3600;
  uint64_t upload_retry_s = 10;  // the first time; doubled up to an hour

  uint64_t report_s = 300;  // 0: the collector is not told how we do

  uint64_t unit_poll_s = 2;
  std::vector<WatchedUnit> units;
  std::vector<std::string> warnings;  // taken otherwise than it is written
  bool operator==(const Config&) const = default;
};

// Fails with kInvalidArgument, with file and line, if there is an unknown key
// or section, a value out of range or a buffer size that is not a power of two.
// `source` names the file.
[[nodiscard]] Result<Config> ParseConfig(std::string_view text,
                                         const std::string& source);
// Returns the defaults if there is no such file. Fails with kSystem if it
// cannot be read.
[[nodiscard]] Result<Config> ReadConfig(const std::string& path);

// systemd.unit(5): at most 255 of [A-Za-z0-9:_.\-@].
bool IsUnitName(std::string_view name);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CONFIG_CONFIG_H_
