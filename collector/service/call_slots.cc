#include "collector/service/call_slots.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include "common/check.h"

namespace clew::collector {

CallSlots::CallSlots(const CallLimits& limits, std::function<uint64_t()> now_s)
    : limits_(limits), now_s_(std::move(now_s)), thread_([this] { Run(); }) {
  CLEW_CHECK(limits_.reserved < limits_.total_max, "no call for hosts");
}

CallSlots::~CallSlots() {
  {
    const std::lock_guard lock(mutex_);
    CLEW_CHECK(entries_.empty(), "{} calls are left", entries_.size());
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

Result<CallSlots::Call> CallSlots::Begin(const Caller& caller,
                                         std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  const auto known = by_host_.find(caller.host);
  if (known != by_host_.end() && known->second >= limits_.host_max) {
    return TryLater(
        "host {:?} has {} {} at work, the limit; try again when one ends",
        caller.host, limits_.host_max, limits_.what);
  }
  if (!HasRoom(caller)) {
    Entry* const victim = Victim(caller.host);
    if (victim == nullptr) {
      return TryLater(
          "as many {} as may be are at work; try again when one ends",
          limits_.what);
    }
    End(*victim);
  }
  const uint64_t now_s = now_s_();
  ++by_host_[caller.host];
  entries_.push_front({.host = caller.host,
                       .engineer = caller.engineer,
                       .cancel = std::move(cancel),
                       .moved_s = now_s,
                       .window_begin_s = now_s});
  return Call(this, entries_.begin());
}

// A call that was ended has its thread a moment longer: there is at most one
// such for each that is at work.
bool CallSlots::HasRoom(const Caller& caller) const {
  if (entries_.size() >= 2 * limits_.total_max) {
    return false;
  }
  const auto live = std::ranges::count(entries_, false, &Entry::ended);
  const auto of_hosts = std::ranges::count_if(entries_, [](const Entry& entry) {
    return !entry.ended && !entry.engineer;
  });
  return static_cast<size_t>(live) < limits_.total_max &&
         (caller.engineer ||
          static_cast<size_t>(of_hosts) < limits_.total_max - limits_.reserved);
}

std::map<std::string, size_t> CallSlots::LiveByHost() const {
  std::map<std::string, size_t> live;
  for (const Entry& entry : entries_) {
    live[entry.host] += entry.ended ? 0 : 1;
  }
  return live;
}

CallSlots::Entry* CallSlots::Victim(const std::string& host) {
  if (limits_.idle_s_max == 0 || entries_.size() >= 2 * limits_.total_max) {
    return nullptr;
  }
  const uint64_t now_s = now_s_();
  const auto live = LiveByHost();
  const auto own = live.find(host);
  const size_t enough = (own == live.end() ? 0 : own->second) + 1;
  // Slow ones first, then those of the host that has the most.
  const auto order = [&](const Entry& entry) {
    const bool slow = IsSlow(entry, now_s);
    return std::tuple(!slow, slow ? 0 : SIZE_MAX - live.at(entry.host),
                      RateOf(entry, now_s));
  };
  Entry* victim = nullptr;
  for (Entry& entry : entries_) {
    const bool may_go = !entry.ended && !entry.engineer &&
                        (IsSlow(entry, now_s) || live.at(entry.host) > enough);
    if (may_go && (victim == nullptr || order(entry) < order(*victim))) {
      victim = &entry;
    }
  }
  return victim;
}

double CallSlots::RateOf(const Entry& entry, uint64_t now_s) {
  const uint64_t seconds = std::max<uint64_t>(now_s - entry.window_begin_s, 1);
  return static_cast<double>(entry.window_bytes) / static_cast<double>(seconds);
}

bool CallSlots::IsSlow(const Entry& entry, uint64_t now_s) const {
  return now_s - entry.window_begin_s >= kYoung_s &&
         RateOf(entry, now_s) < static_cast<double>(limits_.bytes_per_s_min);
}

void CallSlots::End(Entry& entry) {
  entry.ended = true;
  entry.cancel();
}

size_t CallSlots::running() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

CallSlots::Call::~Call() {
  if (slots_ == nullptr) {
    return;
  }
  const std::lock_guard lock(slots_->mutex_);
  const auto count = slots_->by_host_.find(entry_->host);
  if (--count->second == 0) {
    slots_->by_host_.erase(count);
  }
  slots_->entries_.erase(entry_);
}

void CallSlots::Call::Moved(uint64_t bytes) {
  const std::lock_guard lock(slots_->mutex_);
  entry_->moved_s = slots_->now_s_();
  entry_->window_bytes += bytes;
}

void CallSlots::EndIdle() {
  const uint64_t now_s = now_s_();
  for (Entry& entry : entries_) {
    const bool window_over = now_s - entry.window_begin_s >= limits_.idle_s_max;
    if (now_s - entry.moved_s >= limits_.idle_s_max ||
        (window_over &&
         RateOf(entry, now_s) < static_cast<double>(limits_.bytes_per_s_min))) {
      End(entry);
    } else if (window_over) {
      entry.window_begin_s = now_s;
      entry.window_bytes = 0;
    }
  }
}

void CallSlots::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, std::chrono::seconds(1),
                            [&] { return stop_; })) {
    if (limits_.idle_s_max > 0) {
      EndIdle();
    }
  }
}

}  // namespace clew::collector
