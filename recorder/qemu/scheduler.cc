#include "recorder/qemu/scheduler.h"

#include <algorithm>
#include <iterator>

#include "common/check.h"

namespace clew::recorder {

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config), random_(config.seed), cores_(config.cores) {
  CLEW_CHECK(config.cores > 0 && config.quantum_insns > 0 &&
                 config.slice_min_ticks <= config.slice_max_ticks,
             "cores {}, quantum {}, slices {} to {}", config.cores,
             config.quantum_insns, config.slice_min_ticks,
             config.slice_max_ticks);
}

void Scheduler::Ready(Slot thread) {
  if (thread >= core_of_.size()) {
    core_of_.resize(thread + 1, kNoCore);
  }
  Place(thread);
}

void Scheduler::Leave(Slot thread) {
  const uint32_t core = CoreOf(thread);
  cores_[core].current.reset();
  core_of_[thread] = kNoCore;
}

bool Scheduler::SliceOver(Slot thread, uint64_t now_ticks) {
  Core& core = cores_[CoreOf(thread)];
  if (now_ticks < core.slice_end_ticks) {
    return false;
  }
  // Where no thread waits, a thread sometimes moves to an idle core.
  if (AnyoneWaits() || (!IdleCores().empty() && random_.Below(4) == 0)) {
    return true;
  }
  core.slice_end_ticks = now_ticks + SliceTicks();
  return false;
}

void Scheduler::Preempt(Slot thread) {
  Leave(thread);
  Place(thread);
}

std::optional<Scheduler::Turn> Scheduler::Next(uint64_t now_ticks) {
  Fill(now_ticks);
  std::vector<uint32_t> active;
  for (uint32_t i = 0; i < cores_.size(); ++i) {
    if (cores_[i].current.has_value() && i != last_core_) {
      active.push_back(i);
    }
  }
  if (active.empty()) {
    if (last_core_ == kNoCore || !cores_[last_core_].current.has_value()) {
      return std::nullopt;
    }
    active.push_back(last_core_);
  }
  last_core_ = active[random_.Below(active.size())];
  const auto& chosen = cores_[last_core_].current;
  CLEW_CHECK(chosen.has_value(), "core {} has no thread", last_core_);
  return Turn{
      .thread = *chosen, .core = last_core_, .insns = TurnInsns(now_ticks)};
}

uint64_t Scheduler::TurnInsns(uint64_t now_ticks) {
  const uint64_t growth =
      std::clamp<uint64_t>(now_ticks / SchedulerConfig::kSteadyTicks, 1,
                           SchedulerConfig::kGrowthMax);
  return 1 + random_.Below(2 * growth * config_.quantum_insns - 1);
}

// Joins the queue of an idle core if there is one, else the shortest queue;
// equals are drawn.
void Scheduler::Place(Slot thread) {
  std::vector<uint32_t> best = IdleCores();
  if (best.empty()) {
    size_t shortest = SIZE_MAX;
    for (const Core& core : cores_) {
      shortest = std::min(shortest, core.waiting.size());
    }
    for (uint32_t i = 0; i < cores_.size(); ++i) {
      if (cores_[i].waiting.size() == shortest) {
        best.push_back(i);
      }
    }
  }
  cores_[best[random_.Below(best.size())]].waiting.push_back(thread);
}

void Scheduler::Fill(uint64_t now_ticks) {
  for (uint32_t i = 0; i < cores_.size(); ++i) {
    Core& core = cores_[i];
    if (core.current.has_value()) {
      continue;
    }
    core.current = TakeFor(core);
    if (core.current.has_value()) {
      core_of_[*core.current] = i;
      core.slice_end_ticks = now_ticks + SliceTicks();
    }
  }
}

// The first of the core's own queue, else of the longest other one.
std::optional<Scheduler::Slot> Scheduler::TakeFor(Core& core) {
  Core* from = &core;
  if (core.waiting.empty()) {
    from = &*std::max_element(cores_.begin(), cores_.end(),
                              [](const Core& a, const Core& b) {
                                return a.waiting.size() < b.waiting.size();
                              });
  }
  if (from->waiting.empty()) {
    return std::nullopt;
  }
  const Slot thread = from->waiting.front();
  from->waiting.pop_front();
  return thread;
}

uint64_t Scheduler::SliceTicks() {
  return config_.slice_min_ticks +
         random_.Below(config_.slice_max_ticks - config_.slice_min_ticks + 1);
}

bool Scheduler::AnyoneWaits() const {
  return std::any_of(cores_.begin(), cores_.end(),
                     [](const Core& core) { return !core.waiting.empty(); });
}

std::vector<uint32_t> Scheduler::IdleCores() const {
  std::vector<uint32_t> idle;
  for (uint32_t i = 0; i < cores_.size(); ++i) {
    if (!cores_[i].current.has_value() && cores_[i].waiting.empty()) {
      idle.push_back(i);
    }
  }
  return idle;
}

uint32_t Scheduler::CoreOf(Slot thread) const {
  CLEW_CHECK(thread < core_of_.size() && core_of_[thread] != kNoCore,
             "thread {} is on no core", thread);
  return core_of_[thread];
}

}  // namespace clew::recorder
