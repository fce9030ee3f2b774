#include "replayer/schedule_index.h"

#include <algorithm>
#include <limits>

namespace clew::replayer {

Result<ScheduleIndex> ScheduleIndex::Create(
    const std::vector<ScheduleStep>& steps) {
  if (steps.size() > std::numeric_limits<uint32_t>::max()) {
    return CorruptInput(
        "schedule.pb: steps has {} elements, wanted at most 2^32 - 1",
        steps.size());
  }
  ScheduleIndex index;
  std::unordered_map<Tid, uint64_t> retired;
  for (size_t i = 0; i < steps.size(); ++i) {
    const ScheduleStep& step = steps[i];
    if (step.kind != ScheduleStep::Kind::kRun) {
      index.flushes_[index.end_].push_back(step);
      continue;
    }
    uint64_t& before = retired[step.thread];
    if (step.until_insn < before) {
      return CorruptInput(
          "schedule.pb: step {}: thread {} runs until instruction {}, wanted "
          "{} or more, which it retired before",
          i, step.thread, step.until_insn, before);
    }
    const uint64_t count = step.until_insn - before;
    if (count > std::numeric_limits<uint64_t>::max() - index.end_) {
      return CorruptInput(
          "schedule.pb: step {}: {} instructions behind {}, wanted at most "
          "2^64 "
          "in all",
          i, count, index.end_);
    }
    if (count == 0) {
      continue;
    }
    index.runs_of_[step.thread].push_back(
        static_cast<uint32_t>(index.runs_.size()));
    index.runs_.push_back(
        {index.end_, index.end_ + count, step.thread, before});
    index.end_ += count;
    before = step.until_insn;
  }
  return index;
}

std::optional<ScheduleIndex::Place> ScheduleIndex::At(uint64_t position) const {
  if (position >= end_) {
    return std::nullopt;
  }
  const auto after = std::ranges::upper_bound(runs_, position, {}, &Run::begin);
  const Run& run = *std::prev(after);
  return Place{run.thread, run.thread_begin + (position - run.begin), run.end};
}

std::span<const ScheduleStep> ScheduleIndex::FlushesAt(
    uint64_t position) const {
  const auto found = flushes_.find(position);
  return found == flushes_.end() ? std::span<const ScheduleStep>()
                                 : found->second;
}

std::optional<uint64_t> ScheduleIndex::LastBefore(Tid thread,
                                                  uint64_t position) const {
  const auto found = runs_of_.find(thread);
  if (found == runs_of_.end()) {
    return std::nullopt;
  }
  const auto begin_of = [this](uint32_t run) { return runs_[run].begin; };
  const auto after =
      std::ranges::lower_bound(found->second, position, {}, begin_of);
  if (after == found->second.begin()) {
    return std::nullopt;
  }
  return std::min(runs_[*std::prev(after)].end, position) - 1;
}

std::optional<uint64_t> ScheduleIndex::FirstFrom(Tid thread,
                                                 uint64_t position) const {
  const auto found = runs_of_.find(thread);
  if (found == runs_of_.end()) {
    return std::nullopt;
  }
  const auto end_of = [this](uint32_t run) { return runs_[run].end; };
  const auto at = std::ranges::upper_bound(found->second, position, {}, end_of);
  if (at == found->second.end()) {
    return std::nullopt;
  }
  return std::max(runs_[*at].begin, position);
}

}  // namespace clew::replayer
