#ifndef CLEW_REPLAYER_STOP_POINTS_H_
#define CLEW_REPLAYER_STOP_POINTS_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "common/access.h"

namespace clew::replayer {

enum class WatchKind : uint8_t {
  kWrite,   // the value changes
  kRead,    // it is read
  kAccess,  // it is read or written
};

struct Watchpoint {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;  // 1..kWatchBytesMax
  WatchKind kind = WatchKind::kWrite;
  bool operator==(const Watchpoint&) const = default;
};

inline constexpr uint64_t kWatchBytesMax = 4096;
inline constexpr size_t kWatchpointsMax = 64;
inline constexpr size_t kBreakpointsMax = 65536;

// What a run stops for. Asking for a breakpoint costs one load from a table of
// 512 bytes for nearly every address that has none.
class StopPoints {
 public:
  bool empty() const { return breakpoints_.empty() && watchpoints_.empty(); }

  // Adds a breakpoint; adding one again has no effect. Returns false, with
  // nothing changed, if there would be too many.
  bool AddBreakpoint(uint64_t ip);
  void RemoveBreakpoint(uint64_t ip);
  bool has_breakpoints() const { return !breakpoints_.empty(); }
  bool HasBreakpoint(uint64_t ip) const {
    return filter_[Slot(ip)] && breakpoints_.contains(ip);
  }

  // Adds a watchpoint; adding one again has no effect. Returns false, with
  // nothing changed, for a bad size or if there would be too many.
  bool AddWatchpoint(const Watchpoint& watch);
  void RemoveWatchpoint(const Watchpoint& watch);
  const std::vector<Watchpoint>& watchpoints() const { return watchpoints_; }

 private:
  static constexpr size_t kSlots = 4096;
  static size_t Slot(uint64_t ip) { return (ip ^ (ip >> 12)) % kSlots; }

  std::unordered_set<uint64_t> breakpoints_;
  std::bitset<kSlots> filter_;  // bit set: perhaps; clear: certainly none
  std::vector<Watchpoint> watchpoints_;
};

// Returns whether an access to these bytes touches the watchpoint's. Neither
// range wraps around at the end of the address space.
bool Overlaps(const Watchpoint& watch, uint64_t addr, uint64_t size_bytes);

// Returns whether the watchpoint wants to know of an access of this kind (for
// kWrite: of the write, whether or not it changes the value).
bool Wants(WatchKind watch, AccessKind access);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_STOP_POINTS_H_
