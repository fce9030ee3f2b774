#include "collector/idle_calls.h"

#include <chrono>
#include <utility>

#include "common/check.h"

namespace clew::collector {

IdleCalls::IdleCalls(size_t calls_per_host_max, uint64_t idle_s_max,
                     std::function<uint64_t()> now_s)
    : calls_per_host_max_(calls_per_host_max),
      idle_s_max_(idle_s_max),
      now_s_(std::move(now_s)),
      thread_([this] { Run(); }) {}

IdleCalls::~IdleCalls() {
  {
    const std::lock_guard lock(mutex_);
    CLEW_CHECK(entries_.empty(), "{} calls are left", entries_.size());
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

std::optional<IdleCalls::Call> IdleCalls::Begin(const std::string& host,
                                                std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  size_t& count = by_host_[host];
  if (count >= calls_per_host_max_) {
    return std::nullopt;
  }
  ++count;
  entries_.push_front({host, std::move(cancel), now_s_()});
  return Call(this, entries_.begin());
}

size_t IdleCalls::running() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

IdleCalls::Call::~Call() {
  if (calls_ == nullptr) {
    return;
  }
  const std::lock_guard lock(calls_->mutex_);
  const auto count = calls_->by_host_.find(entry_->host);
  if (--count->second == 0) {
    calls_->by_host_.erase(count);
  }
  calls_->entries_.erase(entry_);
}

void IdleCalls::Call::Moved() {
  const std::lock_guard lock(calls_->mutex_);
  entry_->moved_s = calls_->now_s_();
}

void IdleCalls::CancelIdle() {
  const uint64_t now_s = now_s_();
  for (Entry& entry : entries_) {
    if (now_s - entry.moved_s >= idle_s_max_) {
      entry.cancel();
    }
  }
}

void IdleCalls::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, std::chrono::seconds(1),
                            [&] { return stop_; })) {
    CancelIdle();
  }
}

}  // namespace clew::collector
