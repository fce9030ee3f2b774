#include "recorder/qemu/futex_model.h"

#include <algorithm>

namespace clew::recorder {

void FutexModel::Wait(Slot thread, uint64_t addr, uint32_t bitset) {
  sleepers_.push_back({.thread = thread, .addr = addr, .bitset = bitset});
}

std::vector<FutexModel::Slot> FutexModel::Wake(uint64_t addr, uint64_t count,
                                               uint32_t bitset) {
  std::vector<Slot> woken;
  for (auto it = sleepers_.begin();
       it != sleepers_.end() && woken.size() < count;) {
    if (it->addr == addr && (it->bitset & bitset) != 0) {
      woken.push_back(it->thread);
      it = sleepers_.erase(it);
    } else {
      ++it;
    }
  }
  return woken;
}

void FutexModel::Requeue(uint64_t from, uint64_t to, uint64_t count) {
  std::vector<Sleeper> moved;
  for (auto it = sleepers_.begin();
       it != sleepers_.end() && moved.size() < count;) {
    if (it->addr == from) {
      moved.push_back({it->thread, to, it->bitset});
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

bool FutexModel::Sleeps(Slot thread) const {
  return std::any_of(sleepers_.begin(), sleepers_.end(),
                     [&](const Sleeper& s) { return s.thread == thread; });
}

}  // namespace clew::recorder
