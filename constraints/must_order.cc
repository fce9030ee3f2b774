#include "constraints/must_order.h"

#include <algorithm>
#include <map>

namespace clew::constraints {

namespace {

bool HasEmptyInterval(const ConstraintTrace& tightened) {
  for (const auto& thread : tightened.threads) {
    for (const auto& access : thread.accesses) {
      if (access.time.lo > access.time.hi &&
          access.time.lo.as_int() - access.time.hi.as_int() >
              tightened.clock_slack_ticks) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

MustOrder::MustOrder(const ConstraintTrace& trace)
    : thread_count_(static_cast<uint32_t>(trace.threads.size())) {
  for (uint32_t t = 0; t < thread_count_; ++t) {
    first_id_.push_back(access_count());
    for (uint32_t i = 0; i < trace.threads[t].accesses.size(); ++i) {
      refs_.push_back({t, i});
    }
  }
}

std::optional<MustOrder> MustOrder::Compute(const ConstraintTrace& trace,
                                            OrderSources sources) {
  ConstraintTrace tightened;
  if (sources.use_time) {
    tightened = trace;
    TightenTimes(tightened);
    if (HasEmptyInterval(tightened)) {
      return std::nullopt;
    }
  }
  const ConstraintTrace& used = sources.use_time ? tightened : trace;
  MustOrder order(trace);
  order.CollectEdges(used, sources);
  if (!order.Close()) {
    return std::nullopt;
  }
  return order;
}

void MustOrder::CollectEdges(const ConstraintTrace& trace,
                             OrderSources sources) {
  for (uint32_t id = 1; id < refs_.size(); ++id) {
    if (refs_[id].index > 0) {
      edges_.push_back({id - 1, id});
    }
  }
  for (const auto& fact : trace.order) {
    edges_.push_back({IdOf(fact.before), IdOf(fact.after)});
  }
  if (sources.use_core) {
    AddCoreEdges(trace);
  }
  if (sources.use_time) {
    AddTimeEdges(trace);
  }
}

// The last access of every other thread that time puts before, where it is
// not the one that the thread's previous access had already.
void MustOrder::AddTimeEdges(const ConstraintTrace& trace) {
  for (uint32_t t = 0; t < thread_count_; ++t) {
    for (uint32_t u = 0; u < thread_count_; ++u) {
      const auto& theirs = trace.threads[u].accesses;
      size_t passed = 0;
      size_t last = 0;
      for (uint32_t i = 0; t != u && i < trace.threads[t].accesses.size();
           ++i) {
        const auto& access = trace.threads[t].accesses[i];
        while (passed < theirs.size() &&
               OrderedByTime(trace, theirs[passed], access)) {
          ++passed;
        }
        if (passed > last) {
          last = passed;
          edges_.push_back(
              {IdOf({u, static_cast<uint32_t>(passed - 1)}), IdOf({t, i})});
        }
      }
    }
  }
}

// Last access of a slice before the first of the next one that has any.
void MustOrder::AddCoreEdges(const ConstraintTrace& trace) {
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  std::map<std::pair<CoreId, uint32_t>, Range> ranges;  // by (core, on_core)
  for (uint32_t id = 0; id < refs_.size(); ++id) {
    const uint32_t slice = trace.At(refs_[id]).slice;
    if (slice != kNoSlice) {
      const auto& where = trace.slices[slice];
      ranges.try_emplace({where.core, where.on_core}, Range{id, id})
          .first->second.last = id;
    }
  }
  const std::pair<const std::pair<CoreId, uint32_t>, Range>* previous = nullptr;
  for (const auto& entry : ranges) {
    if (previous != nullptr && previous->first.first == entry.first.first) {
      edges_.push_back({previous->second.last, entry.second.first});
    }
    previous = &entry;
  }
}

void MustOrder::Inherit(uint32_t from, uint32_t to) {
  for (uint32_t t = 0; t < thread_count_; ++t) {
    uint32_t& clock = clock_[size_t{to} * thread_count_ + t];
    clock = std::max(clock, CountBefore(from, t));
  }
  uint32_t& own = clock_[size_t{to} * thread_count_ + refs_[from].thread];
  own = std::max(own, refs_[from].index + 1);
}

// Kahn's algorithm; vector clocks flow along it.
bool MustOrder::Close() {
  const size_t count = refs_.size();
  clock_.assign(count * thread_count_, 0);
  std::vector<std::vector<uint32_t>> successors(count);
  std::vector<uint32_t> open(count, 0);
  for (const Edge& edge : edges_) {
    successors[edge.before].push_back(edge.after);
    ++open[edge.after];
  }
  std::vector<uint32_t> ready;
  for (uint32_t id = 0; id < count; ++id) {
    if (open[id] == 0) {
      ready.push_back(id);
    }
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    const uint32_t id = ready[i];
    for (uint32_t next : successors[id]) {
      Inherit(id, next);
      if (--open[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  return ready.size() == count;
}

}  // namespace clew::constraints
