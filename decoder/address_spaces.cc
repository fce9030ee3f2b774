#include "decoder/address_spaces.h"

#include <algorithm>
#include <set>
#include <utility>

namespace clew::decoder {
namespace {

using bundle::MmapRecord;

constexpr TscTicks kTimeOfScan{0};

}  // namespace

void AddressSpaces::AddMapping(const MmapRecord& mapping, TscTicks time,
                               std::string file) {
  if (!mapping.executable || mapping.size_bytes == 0) {
    return;
  }
  mappings_.push_back(
      {.mapping = mapping, .time = time, .file = std::move(file)});
  events_.push_back({.kind = Kind::kMapping,
                     .process = several_ ? mapping.pid : 0,
                     .time = time,
                     .mapping = &mappings_.back()});
}

void AddressSpaces::AddFork(int32_t parent, int32_t child, TscTicks time) {
  if (several_ && parent != child && time != kTimeOfScan) {
    events_.push_back({.kind = Kind::kFork,
                       .process = child,
                       .parent = parent,
                       .time = time});
  }
}

void AddressSpaces::AddExec(int32_t process, TscTicks time) {
  if (several_) {
    events_.push_back({.kind = Kind::kExec, .process = process, .time = time});
  }
}

// Records of several CPUs are in the order of time only within each.
void AddressSpaces::Build(bool snapshot) {
  std::ranges::stable_sort(events_, {}, &Event::time);
  std::map<int32_t, std::vector<const CodeMapping*>> at_end;
  for (const Event& event : events_) {
    switch (event.kind) {
      case Kind::kMapping:
        if (several_ && snapshot && event.time == kTimeOfScan) {
          LastOf(event.process);  // so that forks find it
          at_end[event.process].push_back(event.mapping);
        } else {
          spaces_[LastOf(event.process)].mappings.push_back(event.mapping);
        }
        break;
      case Kind::kFork:
        Fork(event);
        break;
      case Kind::kExec:
        Begin(event.process, event.time, kSpaceUnknown);
        break;
    }
  }
  for (const auto& [process, found] : at_end) {
    auto& mappings = spaces_[LastOf(process)].mappings;
    mappings.insert(mappings.begin(), found.begin(), found.end());
  }
  events_ = {};  // frees its memory
}

// Of a parent that is not known the child has nothing either.
void AddressSpaces::Fork(const Event& event) {
  const auto parent = of_process_.find(event.parent);
  if (parent != of_process_.end()) {
    Begin(event.process, event.time, parent->second.back());
  }
}

SpaceId AddressSpaces::Begin(int32_t process, TscTicks time, SpaceId parent) {
  const auto id = static_cast<SpaceId>(spaces_.size());
  spaces_.push_back({.begin = time, .parent = parent, .mappings = {}});
  of_process_[process].push_back(id);
  return id;
}

SpaceId AddressSpaces::LastOf(int32_t process) {
  const auto found = of_process_.find(process);
  return found == of_process_.end() ? Begin(process, kTimeOfScan, kSpaceUnknown)
                                    : found->second.back();
}

SpaceId AddressSpaces::At(int32_t process, TscTicks time) const {
  const auto found = of_process_.find(several_ ? process : 0);
  if (found == of_process_.end()) {
    return kSpaceUnknown;
  }
  const std::vector<SpaceId>& spaces = found->second;
  const auto later = std::ranges::upper_bound(
      spaces, time, {}, [this](SpaceId id) { return spaces_[id].begin; });
  return later == spaces.begin() ? *later : *(later - 1);
}

CodeMap AddressSpaces::MapOf(SpaceId space) const {
  std::vector<const CodeMapping*> inherited;
  TscTicks until(UINT64_MAX);
  // A parent's id is lower, so this ends.
  for (SpaceId id = space; id != kSpaceUnknown; id = spaces_[id].parent) {
    const auto& own = spaces_[id].mappings;
    for (auto mapping = own.rbegin(); mapping != own.rend(); ++mapping) {
      if ((*mapping)->time <= until) {
        inherited.push_back(*mapping);
      }
    }
    until = std::min(until, spaces_[id].begin);
  }
  CodeMap map;
  for (auto mapping = inherited.rbegin(); mapping != inherited.rend();
       ++mapping) {
    map.Add(**mapping);
  }
  return map;
}

std::vector<MmapRecord> AddressSpaces::Missing() const {
  std::vector<MmapRecord> missing;
  std::set<std::pair<std::string, std::vector<std::byte>>> seen;
  for (const CodeMapping& of : mappings_) {
    if (of.file.empty() &&
        seen.emplace(of.mapping.path, of.mapping.build_id).second) {
      missing.push_back(of.mapping);
    }
  }
  return missing;
}

}  // namespace clew::decoder
