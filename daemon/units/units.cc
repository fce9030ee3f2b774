#include "daemon/units/units.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "common/digest.h"

namespace clew::daemon {
namespace {

std::optional<uint64_t> TouchedAt(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return MixBits(static_cast<uint64_t>(info.st_mtim.tv_sec)) ^
         static_cast<uint64_t>(info.st_mtim.tv_nsec);
}

// cgroup-v2.rst, "CPU Interface Files": cpu.stat, usage_usec.
std::optional<uint64_t> CpuTimeUs(const std::string& cgroup) {
  std::ifstream file(cgroup + "/cpu.stat");
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "usage_usec") {
      return value;
    }
  }
  return std::nullopt;
}

Failure FailureOf(const UnitState& state, int32_t process) {
  Failure failure;
  failure.thread = Tid(process);
  if (state.ended_by_signal != 0) {
    failure.kind = FailureKind::kSignal;
    failure.signal = state.ended_by_signal;
  } else if (state.exit_status != 0) {
    failure.kind = FailureKind::kExit;
    failure.exit_status = state.exit_status;
  }
  return failure;
}

Failure HangOf(int32_t process) {
  Failure failure;
  failure.kind = FailureKind::kHang;
  failure.thread = Tid(process);
  return failure;
}

}  // namespace

void UnitWatch::SetUnits(const std::vector<WatchedUnit>& units) {
  std::map<std::string, Watched> kept;
  for (const WatchedUnit& unit : units) {
    Watched& watched = kept[unit.name];
    const auto known = units_.find(unit.name);
    if (known != units_.end()) {
      watched = known->second;
      if (!(watched.unit == unit)) {
        watched.sign_at_ms.reset();  // the sign of life may be another one
      }
    }
    watched.unit = unit;
  }
  units_ = std::move(kept);
  if (units_.empty()) {
    error_.clear();  // nobody asks any more
  }
}

bool UnitWatch::Failed(Watched& watched, const UnitState& now) const {
  const bool known = watched.state.has_value();
  const bool failed = known && ((now.failed && !watched.state->failed) ||
                                now.restarts > watched.state->restarts);
  return failed && watched.unit.on_failure;
}

std::optional<uint64_t> UnitWatch::SignOf(const Watched& watched) const {
  if (!watched.unit.heartbeat.empty()) {
    return TouchedAt(watched.unit.heartbeat);
  }
  const std::string cgroup = watched.state && !watched.state->cgroup.empty()
                                 ? watched.state->cgroup
                                 : "/system.slice/" + watched.unit.name;
  return CpuTimeUs(cgroup_root_ + cgroup);
}

bool UnitWatch::Hangs(Watched& watched, uint64_t now_ms) const {
  const auto sign = SignOf(watched);
  const bool runs = sign && (!watched.state || watched.state->active);
  if (watched.unit.hang_s == 0 || !runs) {
    watched.sign_at_ms.reset();
    watched.hung = false;
    return false;
  }
  if (!watched.sign_at_ms || *sign != watched.sign) {
    watched.sign = *sign;
    watched.sign_at_ms = now_ms;
    watched.hung = false;
    return false;
  }
  const bool hung = now_ms - *watched.sign_at_ms >= watched.unit.hang_s * 1000;
  return hung && !std::exchange(watched.hung, true);
}

bool UnitWatch::IsConnected(uint64_t now_ms) {
  if (manager_ == nullptr || connected_ || now_ms < connect_at_ms_) {
    return connected_;
  }
  if (const Status made = manager_->Connect(); !made) {
    Lost(made.error(), now_ms);
    return false;
  }
  connected_ = true;
  return true;
}

void UnitWatch::Lost(const Error& error, uint64_t now_ms) {
  connected_ = false;
  error_ = error.message;
  connect_at_ms_ = now_ms + pause_ms_;
  pause_ms_ = std::min(pause_ms_ * 2, kPauseMsMax);
}

std::optional<UnitState> UnitWatch::AskAbout(Watched& watched,
                                             uint64_t now_ms) {
  // One that is silent would be silent for each of the others, too.
  if (!IsConnected(now_ms)) {
    watched.error = error_;
    return std::nullopt;
  }
  auto state = manager_->Get(watched.unit.name);
  if (!state && state.error().code == ErrorCode::kSystem) {
    Lost(state.error(), now_ms);
  } else {
    error_.clear();
    pause_ms_ = kPauseMsMin;
  }
  watched.error = state ? "" : state.error().message;
  return state ? std::optional(*state) : std::nullopt;
}

std::vector<UnitEvent> UnitWatch::Poll(uint64_t now_ms) {
  std::vector<UnitEvent> events;
  for (auto& [name, watched] : units_) {
    const auto now = AskAbout(watched, now_ms);
    if (now && Failed(watched, *now)) {
      events.push_back({name, TriggerKind::kUnitFailed, watched.last_process,
                        FailureOf(*now, watched.last_process)});
    }
    if (now) {
      watched.state = now;
      watched.last_process =
          now->process != 0 ? now->process : watched.last_process;
    }
    if (Hangs(watched, now_ms)) {
      events.push_back({name, TriggerKind::kHang, watched.last_process,
                        HangOf(watched.last_process)});
    }
  }
  return events;
}

std::vector<UnitReport> UnitWatch::Report(uint64_t now_ms) const {
  std::vector<UnitReport> reports;
  reports.reserve(units_.size());
  for (const auto& [name, watched] : units_) {
    reports.push_back(
        {watched.unit, watched.error.empty() ? watched.state : std::nullopt,
         (now_ms - watched.sign_at_ms.value_or(now_ms)) / 1000, watched.error});
  }
  return reports;
}

}  // namespace clew::daemon
