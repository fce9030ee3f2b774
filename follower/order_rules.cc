#include "follower/order_rules.h"

#include <algorithm>
#include <map>
#include <utility>

namespace clew::follower {

OrderRules::OrderRules(const Process& process, uint64_t slack_ticks)
    : slack_ticks_(slack_ticks), slices_(&process.tape().slices()) {
  std::map<uint32_t, size_t> dense;
  std::vector<std::vector<uint32_t>> by_thread(process.thread_count());
  for (const Slice& slice : *slices_) {
    const auto thread = process.tape().IndexOf(slice.thread);
    slice_thread_.push_back(thread.value_or(kNoThread));
    slice_core_.push_back(kNoCore);
    if (!thread) {
      continue;
    }
    const auto [core, added] = dense.emplace(slice.core.as_int(), dense.size());
    if (added) {
      cores_.emplace_back();
      complete_.push_back(0);
    }
    cores_[core->second].push_back(slice.id);
    slice_core_.back() = core->second;
    by_thread[*thread].push_back(slice.id);
  }
  slice_ordinal_.resize(slices_->size());
  for (auto& ids : by_thread) {
    // Stable: slices in which no time passed keep their core's order.
    std::ranges::stable_sort(ids, {}, [this](uint32_t id) {
      const TscInterval& time = (*slices_)[id].time;
      return std::pair(time.lo, time.hi);
    });
    for (size_t i = 0; i < ids.size(); ++i) {
      slice_ordinal_[ids[i]] = static_cast<uint32_t>(i);
    }
  }
}

Result<bool> OrderRules::Permits(const Process& process, size_t thread) {
  CLEW_ASSIGN_OR_RETURN(own, process.NextBlock(thread));
  if (own == nullptr) {
    return false;
  }
  const uint64_t lo = own->time.lo.as_int();
  const uint32_t slice = own->slice;
  for (size_t other = 0; other < process.thread_count(); ++other) {
    if (other == thread ||
        process.NextIsAfter(other, static_cast<double>(lo))) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(block, process.NextBlock(other));
    if (block != nullptr && lo > slack_ticks_ &&
        lo - slack_ticks_ > block->time.hi.as_int()) {
      return false;
    }
  }
  if (!StoresPermit(process, thread, lo)) {
    return false;
  }
  return CorePermits(process, slice);
}

// A store has left when the slice ends in which it was made.
bool OrderRules::StoresPermit(const Process& process, size_t thread,
                              uint64_t lo) const {
  if (process.queues() == 0 || lo <= slack_ticks_) {
    return true;
  }
  for (size_t other = 0; other < process.thread_count(); ++other) {
    if (other != thread && process.StoresWait(other) &&
        lo - slack_ticks_ >
            (*slices_)[process.thread(other).slice].time.hi.as_int()) {
      return false;
    }
  }
  return true;
}

Result<bool> OrderRules::Complete(const Process& process,
                                  uint32_t slice) const {
  const size_t thread = slice_thread_[slice];
  if (process.thread(thread).slice == slice && process.StoresWait(thread)) {
    return false;
  }
  const TscTicks end = (*slices_)[slice].time.hi;
  if (process.NextIsAfter(slice_thread_[slice],
                          static_cast<double>(end.as_int()))) {
    return true;
  }
  CLEW_ASSIGN_OR_RETURN(block, process.NextBlock(slice_thread_[slice]));
  return block == nullptr ||
         slice_ordinal_[block->slice] > slice_ordinal_[slice];
}

Result<bool> OrderRules::CorePermits(const Process& process, uint32_t slice) {
  const auto& order = cores_[slice_core_[slice]];
  size_t& complete = complete_[slice_core_[slice]];
  while (complete < order.size() && order[complete] != slice) {
    CLEW_ASSIGN_OR_RETURN(over, Complete(process, order[complete]));
    if (!over) {
      return false;
    }
    ++complete;
  }
  return true;
}

}  // namespace clew::follower
