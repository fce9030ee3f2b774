#include "recorder/qemu/calls/futex_model.h"

#include <algorithm>

namespace clew::recorder {

void FutexModel::Wait(Slot thread, uint64_t addr, uint32_t bitset) {
  sleepers_.push_back({.thread = thread, .addr = addr, .bitset = bitset});
}

void FutexModel::MarkWoken(Slot thread) {
  for (Sleeper& sleeper : sleepers_) {
    sleeper.woken = sleeper.woken || sleeper.thread == thread;
  }
}

std::vector<FutexModel::Slot> FutexModel::Wake(uint64_t addr, uint64_t count,
                                               uint32_t bitset) {
  const auto matches = [&](const Sleeper& s) {
    return s.addr == addr && (s.bitset & bitset) != 0;
  };
  // Marked sleepers use up the count before unmarked ones, wherever they are in
  // the queue: the kernel has woken them for certain.
  const auto marked = static_cast<uint64_t>(
      std::count_if(sleepers_.begin(), sleepers_.end(),
                    [&](const Sleeper& s) { return matches(s) && s.woken; }));
  uint64_t unmarked = count - std::min(count, marked);
  std::vector<Slot> woken;
  for (auto it = sleepers_.begin();
       it != sleepers_.end() && woken.size() < count;) {
    if (matches(*it) && (it->woken || unmarked > 0)) {
      unmarked -= it->woken ? 0 : 1;
      woken.push_back(it->thread);
      it = sleepers_.erase(it);
    } else {
      ++it;
    }
  }
  return woken;
}

std::vector<FutexModel::Slot> FutexModel::WakeBy(const FutexCall& call,
                                                 uint64_t result) {
  if (result == 0) {
    return {};
  }
  const uint64_t first = std::min<uint64_t>(call.value, result);
  switch (call.kind) {
    case FutexCall::Kind::kWake:
      return Wake(call.addr, result, call.bitset);
    case FutexCall::Kind::kRequeue: {
      std::vector<Slot> woken = Wake(call.addr, first, UINT32_MAX);
      Requeue(call.addr, call.addr2, call.value2);
      return woken;
    }
    case FutexCall::Kind::kWakeOp: {
      std::vector<Slot> woken = Wake(call.addr, first, UINT32_MAX);
      const auto more = Wake(call.addr2, result - woken.size(), UINT32_MAX);
      woken.insert(woken.end(), more.begin(), more.end());
      return woken;
    }
    case FutexCall::Kind::kWait:
    case FutexCall::Kind::kLock:
    case FutexCall::Kind::kOwner:
    case FutexCall::Kind::kOther:
      return {};
  }
  return {};
}

// Keeps the order among those that are moved, and drops their marks.
void FutexModel::Requeue(uint64_t from, uint64_t to, uint64_t count) {
  std::vector<Sleeper> moved;
  for (auto it = sleepers_.begin();
       it != sleepers_.end() && moved.size() < count;) {
    if (it->addr == from) {
      moved.push_back({.thread = it->thread, .addr = to, .bitset = it->bitset});
      it = sleepers_.erase(it);
    } else {
      ++it;
    }
  }
  sleepers_.insert(sleepers_.end(), moved.begin(), moved.end());
}

void FutexModel::Remove(Slot thread) {
  std::erase_if(sleepers_,
                [&](const Sleeper& s) { return s.thread == thread; });
}

}  // namespace clew::recorder
