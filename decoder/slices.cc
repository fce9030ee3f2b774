#include "decoder/slices.h"

#include <algorithm>
#include <optional>

namespace clew::decoder {
namespace {

constexpr TscTicks kForever{UINT64_MAX};

// The slices of one core, as its events come by.
class CoreSlices {
 public:
  CoreSlices(CoreId core, std::vector<Slice>& out) : core_(core), out_(out) {}

  void OnIn(const SliceBoundary& event) {
    // Tracing began with this very switch: one slice, not an empty one before.
    if (open_ && open_->thread == event.thread &&
        open_->time.lo == event.time.lo) {
      return;
    }
    Close(event.time.hi);
    free_since_ = event.time.lo;
    if (event.thread > Tid(0)) {
      Open(event, event.time.lo);
    }
  }

  void OnOut(const SliceBoundary& event) {
    if (!open_ && event.thread > Tid(0)) {
      Open(event, free_since_);
    }
    Close(event.time.hi);
    free_since_ = event.time.lo;
  }

  // Of a thread that is on the core, by its name of from now on.
  void OnExec(const SliceBoundary& event) {
    OnOut(event);
    Open(event, event.time.lo);
  }

  // The trace of the thread that is on the core already begins.
  void OnStart(const SliceBoundary& event) {
    if (!open_ || open_->thread != event.thread) {
      OnIn(event);
    }
  }

  void Close(TscTicks until) {
    if (open_) {
      open_->time.hi = std::max(until, open_->time.lo);
      open_->on_core = on_core_++;
      out_.push_back(*open_);
      open_.reset();
    }
  }

 private:
  void Open(const SliceBoundary& event, TscTicks since) {
    open_ = Slice{.core = core_,
                  .thread = event.thread,
                  .process = std::max(event.process, 0),
                  .time = {since, kForever}};
  }

  CoreId core_;
  std::vector<Slice>& out_;
  std::optional<Slice> open_;
  TscTicks free_since_;
  uint32_t on_core_ = 0;
};

}  // namespace

void SliceBuilder::Add(const SliceBoundary& event) {
  events_[event.core].push_back(event);
}

void SliceBuilder::SetOnlyThread(CoreId core, Tid thread) {
  only_.emplace(core, thread);
}

std::vector<Slice> SliceBuilder::Build() {
  for (const auto& [core, thread] : only_) {
    if (!events_.contains(core)) {
      events_[core].push_back({.kind = SliceBoundary::Kind::kIn,
                               .core = core,
                               .thread = thread,
                               .time = {}});
    }
  }
  std::vector<Slice> slices;
  for (auto& [core, events] : events_) {
    std::stable_sort(events.begin(), events.end(),
                     [](const SliceBoundary& a, const SliceBoundary& b) {
                       return a.time.lo < b.time.lo;
                     });
    CoreSlices of_core(core, slices);
    for (const SliceBoundary& event : events) {
      switch (event.kind) {
        case SliceBoundary::Kind::kIn:
          of_core.OnIn(event);
          break;
        case SliceBoundary::Kind::kOut:
          of_core.OnOut(event);
          break;
        case SliceBoundary::Kind::kStart:
          of_core.OnStart(event);
          break;
        case SliceBoundary::Kind::kExec:
          of_core.OnExec(event);
          break;
      }
    }
    of_core.Close(kForever);
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    slices[i].id = static_cast<uint32_t>(i);
  }
  return slices;
}

}  // namespace clew::decoder
