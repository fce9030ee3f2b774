#ifndef CLEW_REPLAYER_WATCH_H_
#define CLEW_REPLAYER_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/access.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "replayer/stop_points.h"

namespace clew::replayer {

// Finds out whether what just ran touched a watchpoint. Accesses of the CPU and
// those of system calls (Process::set_observer) come through OnAccess, which
// stops the machine after an instruction of its own; signal frames and mappings
// do not, and are seen by comparing only. So Check must be asked after every
// system call and signal.
//
// A write that leaves the value as it was is not a hit for WatchKind::kWrite.
// Not thread-safe.
class WatchMonitor final : public machine::AccessObserver {
 public:
  // Watches from the present contents on.
  WatchMonitor(const StopPoints& points, const machine::Memory& memory);

  bool OnAccess(const machine::ObservedAccess& access) override;

  // Returns the watchpoint hit since the last call (the first of several), if
  // any.
  std::optional<Watchpoint> Check();

 private:
  struct Watched {
    Watchpoint watch;
    std::vector<std::byte> value;  // empty where not mapped
    bool touched = false;          // kRead, kAccess: accessed since
  };
  std::vector<std::byte> Read(const Watchpoint& watch) const;
  bool Hit(Watched& watched);

  const machine::Memory& memory_;
  std::vector<Watched> watched_;
  std::vector<std::byte> now_;  // scratch of Hit
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_WATCH_H_
