#include "replayer/watch.h"

#include <utility>

namespace clew::replayer {

WatchMonitor::WatchMonitor(const StopPoints& points,
                           const machine::Memory& memory)
    : memory_(memory) {
  for (const Watchpoint& watch : points.watchpoints()) {
    watched_.push_back({.watch = watch, .value = Read(watch)});
  }
}

std::vector<std::byte> WatchMonitor::Read(const Watchpoint& watch) const {
  std::vector<std::byte> bytes(watch.size_bytes);
  if (!memory_.Peek(watch.addr, bytes)) {
    bytes.clear();
  }
  return bytes;
}

bool WatchMonitor::OnAccess(const machine::ObservedAccess& access) {
  bool stop = false;
  for (Watched& watched : watched_) {
    if (Wants(watched.watch.kind, access.kind) &&
        Overlaps(watched.watch, access.addr, access.size_bytes)) {
      watched.touched = true;
      stop = true;
    }
  }
  return stop;
}

std::optional<Watchpoint> WatchMonitor::Check() {
  std::optional<Watchpoint> hit;
  for (Watched& watched : watched_) {
    if (Hit(watched) && !hit) {
      hit = watched.watch;
    }
  }
  return hit;
}

bool WatchMonitor::Hit(Watched& watched) {
  const bool touched = std::exchange(watched.touched, false);
  now_.resize(watched.watch.size_bytes);
  if (!memory_.Peek(watched.watch.addr, now_)) {
    now_.clear();
  }
  // Memory that comes or goes is not a change of a value.
  const bool changed =
      !now_.empty() && !watched.value.empty() && now_ != watched.value;
  const bool remapped = now_.empty() != watched.value.empty();
  if (changed || remapped) {
    watched.value = now_;
  }
  return watched.watch.kind == WatchKind::kWrite ? changed : touched;
}

}  // namespace clew::replayer
