#include "replayer/stop_points.h"

#include <algorithm>

namespace clew::replayer {

bool StopPoints::AddBreakpoint(uint64_t ip) {
  if (breakpoints_.size() >= kBreakpointsMax && !breakpoints_.contains(ip)) {
    return false;
  }
  breakpoints_.insert(ip);
  filter_.set(Slot(ip));
  return true;
}

void StopPoints::RemoveBreakpoint(uint64_t ip) {
  if (breakpoints_.erase(ip) == 0) {
    return;
  }
  // Other breakpoints may share the slot.
  filter_.reset();
  for (const uint64_t left : breakpoints_) {
    filter_.set(Slot(left));
  }
}

bool StopPoints::AddWatchpoint(const Watchpoint& watch) {
  if (watch.size_bytes == 0 || watch.size_bytes > kWatchBytesMax) {
    return false;
  }
  if (std::ranges::find(watchpoints_, watch) != watchpoints_.end()) {
    return true;
  }
  if (watchpoints_.size() >= kWatchpointsMax) {
    return false;
  }
  watchpoints_.push_back(watch);
  return true;
}

void StopPoints::RemoveWatchpoint(const Watchpoint& watch) {
  std::erase(watchpoints_, watch);
}

bool Overlaps(const Watchpoint& watch, uint64_t addr, uint64_t size_bytes) {
  // Distances instead of ends, so that the last byte of the address space
  // cannot overflow.
  return addr >= watch.addr ? addr - watch.addr < watch.size_bytes
                            : watch.addr - addr < size_bytes;
}

bool Wants(WatchKind watch, AccessKind access) {
  switch (watch) {
    case WatchKind::kWrite:
      return Writes(access);
    case WatchKind::kRead:
      return Reads(access);
    case WatchKind::kAccess:
      return true;
  }
  return false;
}

}  // namespace clew::replayer
