#include "daemon/pipeline/admission.h"

#include <algorithm>

namespace clew::daemon {
namespace {

// Makes room for one more, by dropping what `when` tells to be oldest.
template <class Map, class When>
void DropOldest(Map& map, const When& when) {
  if (map.size() < Admission::kKeysMax) {
    return;
  }
  map.erase(std::ranges::min_element(
      map, {}, [&](const auto& entry) { return when(entry.second); }));
}

}  // namespace

std::string_view ToString(Admitted admitted) {
  switch (admitted) {
    case Admitted::kYes:
      return "admitted";
    case Admitted::kDuplicate:
      return "the same process failed just now";
    case Admitted::kRateOfFailure:
      return "rate_failure is reached for this program and signal";
    case Admitted::kRateOfAll:
      return "rate_all is reached";
    case Admitted::kRateOfUser:
      return "this user's half of rate_all is reached";
  }
  return "";
}

uint64_t Admission::Within(const std::deque<uint64_t>& times_ms,
                           uint64_t now_ms) const {
  return static_cast<uint64_t>(std::ranges::count_if(
      times_ms,
      [&](uint64_t time) { return time + limits_.period_ms > now_ms; }));
}

Admitted Admission::Ask(const FailureKey& key, int32_t process,
                        uint64_t now_ms) const {
  const auto seen = processes_.find(process);
  if (process != 0 && seen != processes_.end() &&
      seen->second + limits_.merge_ms > now_ms) {
    return Admitted::kDuplicate;
  }
  const auto failure = failures_.find(key);
  if (failure != failures_.end() &&
      Within(failure->second.saved_ms, now_ms) >= limits_.per_failure) {
    return Admitted::kRateOfFailure;
  }
  if (Within(saved_ms_, now_ms) >= limits_.all) {
    return Admitted::kRateOfAll;
  }
  if (SavedOf(key.user, now_ms) >= ShareOf(key.user, limits_.all)) {
    return Admitted::kRateOfUser;
  }
  return Admitted::kYes;
}

uint64_t Admission::SavedOf(uint32_t user, uint64_t now_ms) const {
  uint64_t count = 0;
  for (size_t i = 0; i < saved_ms_.size(); ++i) {
    const bool counts = saved_ms_[i] + limits_.period_ms > now_ms;
    count += counts && saved_users_[i] == user ? 1 : 0;
  }
  return count;
}

void Admission::Remember(std::deque<uint64_t>& times_ms, uint64_t limit,
                         uint64_t now_ms) const {
  times_ms.push_back(now_ms);
  while (times_ms.size() > limit) {
    times_ms.pop_front();
  }
}

Admission::Failure& Admission::See(const FailureKey& key, int32_t process,
                                   uint64_t now_ms) {
  if (process != 0) {
    if (!processes_.contains(process)) {
      DropOldest(processes_, [](uint64_t seen_ms) { return seen_ms; });
    }
    processes_[process] = now_ms;
  }
  if (!failures_.contains(key)) {
    DropOldest(failures_,
               [](const Failure& failure) { return failure.seen_ms; });
  }
  Failure& failure = failures_[key];
  failure.seen_ms = now_ms;
  return failure;
}

uint64_t Admission::Saved(const FailureKey& key, int32_t process,
                          uint64_t now_ms) {
  Failure& failure = See(key, process, now_ms);
  Remember(failure.saved_ms, limits_.per_failure, now_ms);
  Remember(saved_ms_, limits_.all, now_ms);
  saved_users_.push_back(key.user);
  while (saved_users_.size() > saved_ms_.size()) {
    saved_users_.pop_front();
  }
  const uint64_t not_saved = failure.not_saved;
  failure.not_saved = 0;
  return not_saved;
}

void Admission::NotSaved(const FailureKey& key, int32_t process,
                         uint64_t now_ms) {
  ++See(key, process, now_ms).not_saved;
}

}  // namespace clew::daemon
