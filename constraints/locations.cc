#include "constraints/locations.h"

#include <algorithm>
#include <cmath>

namespace clew::constraints {

namespace {

struct Span {
  uint64_t addr;
  uint32_t size;
  bool operator==(const Span&) const = default;
};

// Overlapping spans end up in one cluster; its locations are appended.
void AppendCluster(const std::vector<Span>& cluster,
                   std::vector<Location>& locations) {
  const bool uniform = std::ranges::all_of(
      cluster, [&](const Span& span) { return span == cluster[0]; });
  if (uniform) {
    locations.push_back({cluster[0].addr, cluster[0].size, {}, {}});
    return;
  }
  uint64_t next = cluster[0].addr;
  for (const Span& span : cluster) {
    for (; next < span.addr + span.size; ++next) {
      locations.push_back({next, 1, {}, {}});
    }
  }
}

std::vector<Location> Split(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::addr);
  std::vector<Location> locations;
  std::vector<Span> cluster;
  uint64_t end = 0;
  for (const Span& span : spans) {
    if (!cluster.empty() && span.addr >= end) {
      AppendCluster(cluster, locations);
      cluster.clear();
    }
    end = cluster.empty() ? span.addr + span.size
                          : std::max(end, span.addr + span.size);
    cluster.push_back(span);
  }
  if (!cluster.empty()) {
    AppendCluster(cluster, locations);
  }
  return locations;
}

}  // namespace

Locations::Locations(const ConstraintTrace& trace, const MustOrder& order)
    : order_(order) {
  std::vector<Span> spans;
  for (uint32_t id = 0; id < order.access_count(); ++id) {
    const auto& access = trace.At(order.RefOf(id));
    spans.push_back({access.addr.as_int(), access.size_bytes});
  }
  for (const auto& demand : trace.final_memory) {
    spans.push_back({demand.addr.as_int(), demand.size_bytes});
  }
  locations_ = Split(spans);
  const auto range_of = [&](const Span& span) {
    const auto first =
        std::ranges::lower_bound(locations_, span.addr, {}, &Location::addr);
    const auto last = std::ranges::lower_bound(
        locations_, span.addr + span.size, {}, &Location::addr);
    return Range{static_cast<uint32_t>(first - locations_.begin()),
                 static_cast<uint32_t>(last - first)};
  };
  for (Location& location : locations_) {
    location.writes.resize(order.thread_count());
  }
  for (uint32_t id = 0; id < order.access_count(); ++id) {
    const auto& access = trace.At(order.RefOf(id));
    const Range range = range_of(spans[id]);
    of_access_.push_back(range);
    for (uint32_t l = range.first; l < range.first + range.count; ++l) {
      if (Writes(access.kind)) {
        locations_[l].writes[order.RefOf(id).thread].push_back(id);
      }
      if (Reads(access.kind)) {
        locations_[l].reads.push_back(id);
      }
    }
  }
  for (size_t i = order.access_count(); i < spans.size(); ++i) {
    of_demand_.push_back(range_of(spans[i]));
  }
}

std::vector<uint32_t> Locations::LastCertain(const Location& location,
                                             uint32_t read) const {
  std::vector<uint32_t> last;
  for (const auto& writes : location.writes) {
    const auto end = std::ranges::partition_point(writes, [&](uint32_t write) {
      return read == kAtEnd || order_.Before(write, read);
    });
    if (end != writes.begin()) {
      last.push_back(*(end - 1));
    }
  }
  return last;
}

bool Locations::MayBeRead(uint32_t write, uint32_t read,
                          const std::vector<uint32_t>& last_before) const {
  if (write == read || (read != kAtEnd && order_.Before(read, write))) {
    return false;
  }
  return std::ranges::none_of(
      last_before, [&](uint32_t other) { return order_.Before(write, other); });
}

std::vector<uint32_t> Locations::Candidates(uint32_t location,
                                            uint32_t read) const {
  const Location& at = locations_[location];
  const std::vector<uint32_t> last = LastCertain(at, read);
  std::vector<uint32_t> candidates;
  if (last.empty()) {
    candidates.push_back(kInitial);
  }
  for (const auto& writes : at.writes) {
    // Older ones than the thread's last certain one are overwritten.
    const auto begin = std::ranges::partition_point(writes, [&](uint32_t w) {
      return std::ranges::any_of(
          last, [&](uint32_t other) { return order_.Before(w, other); });
    });
    for (auto it = begin; it != writes.end(); ++it) {
      if (read != kAtEnd && order_.Before(read, *it)) {
        break;
      }
      if (MayBeRead(*it, read, last)) {
        candidates.push_back(*it);
      }
    }
  }
  return candidates;
}

namespace {

double BitsOf(const Expr* condition) {
  const bool compares =
      condition->op == ExprOp::kEq && condition->operands[1]->is_const();
  return compares ? condition->operands[0]->width : 1;
}

}  // namespace

Ambiguity MeasureAmbiguity(const ConstraintTrace& trace, OrderSources sources) {
  Ambiguity result;
  const auto order = MustOrder::Compute(trace, sources);
  if (!order) {
    return result;
  }
  const Locations locations(trace, *order);
  for (uint32_t id = 0; id < order->access_count(); ++id) {
    if (!Reads(trace.At(order->RefOf(id)).kind)) {
      continue;
    }
    ++result.reads;
    const auto range = locations.OfAccess(id);
    size_t most = 1;  // bytes of one read move together, mostly
    for (uint32_t l = range.first; l < range.first + range.count; ++l) {
      most = std::max(most, locations.Candidates(l, id).size());
    }
    result.contested_reads += most > 1 ? 1 : 0;
    result.ambiguity_bits += std::log2(static_cast<double>(most));
  }
  for (const auto& path : trace.path) {
    result.evidence_bits += BitsOf(path.condition);
  }
  for (const auto& demand : trace.final_memory) {
    result.evidence_bits += 8.0 * demand.size_bytes;
  }
  return result;
}

}  // namespace clew::constraints
