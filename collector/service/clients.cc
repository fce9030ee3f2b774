#include "collector/service/clients.h"

#include <algorithm>

namespace clew::collector {
namespace {

bool Older(uint64_t since_s, uint64_t age_s, uint64_t now_s) {
  return now_s >= since_s && now_s - since_s >= age_s;
}

}  // namespace

bool Clients::MakeRoom(Host& host, uint64_t now_s) const {
  if (host.bundles.size() < limits_.bundles_in_flight_max) {
    return true;
  }
  const auto oldest = std::ranges::min_element(
      host.bundles, {},
      [](const auto& bundle) { return bundle.second.asked_s; });
  if (oldest == host.bundles.end() ||
      !Older(oldest->second.asked_s, limits_.give_way_s, now_s)) {
    return false;
  }
  host.bundles.erase(oldest);
  return true;
}

Status Clients::Begin(const std::string& host, const FileList& list) {
  Expire();
  Bundle bundle{.list = list, .chunk_bytes = {}, .asked_s = now_s_()};
  for (const ChunkRef& chunk : list.Chunks()) {
    bundle.chunk_bytes.emplace(chunk.id, chunk.size_bytes);
  }
  const std::lock_guard lock(mutex_);
  const auto known = hosts_.find(host);
  if (known == hosts_.end() && hosts_.size() >= limits_.hosts_in_flight_max) {
    return TryLater(
        "{} hosts are sending bundles, the limit; "
        "try again later",
        hosts_.size());
  }
  Host& mine = hosts_[host];
  if (!mine.bundles.contains(list.id()) && !MakeRoom(mine, bundle.asked_s)) {
    return TryLater(
        "host {:?} has {} bundles in flight, the "
        "limit; try again when one is committed",
        host, mine.bundles.size());
  }
  mine.bundles.insert_or_assign(list.id(), std::move(bundle));
  return {};
}

std::optional<FileList> Clients::ListInFlight(const std::string& host,
                                              const BundleId& id) {
  const uint64_t now_s = now_s_();
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    return std::nullopt;
  }
  const auto bundle = at->second.bundles.find(id);
  if (bundle == at->second.bundles.end()) {
    return std::nullopt;
  }
  bundle->second.asked_s = now_s;
  return bundle->second.list;
}

void Clients::Forget(const std::string& host, const BundleId& id) {
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    return;
  }
  at->second.bundles.erase(id);
  if (at->second.bundles.empty() && at->second.parked.empty()) {
    hosts_.erase(at);
  }
}

std::optional<ChunkRef> Clients::Wanted(const std::string& host,
                                        const ChunkId& chunk) {
  const uint64_t now_s = now_s_();
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    return std::nullopt;
  }
  std::optional<ChunkRef> wanted;
  for (auto& [id, bundle] : at->second.bundles) {
    const auto found = bundle.chunk_bytes.find(chunk);
    if (found != bundle.chunk_bytes.end()) {
      bundle.asked_s = now_s;
      wanted = ChunkRef{.id = chunk, .size_bytes = found->second};
    }
  }
  return wanted;
}

std::optional<ChunkUpload> Clients::TakeParked(const std::string& host,
                                               const ChunkId& chunk) {
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    return std::nullopt;
  }
  std::list<Parked>& parked = at->second.parked;
  const auto found = std::ranges::find_if(parked, [&](const Parked& each) {
    return each.upload.chunk().id == chunk;
  });
  if (found == parked.end()) {
    return std::nullopt;
  }
  std::optional<ChunkUpload> upload(std::move(found->upload));
  parked.erase(found);
  return upload;
}

void Clients::Park(const std::string& host, ChunkUpload upload) {
  const uint64_t now_s = now_s_();
  std::list<Parked> ended;  // destroyed after the lock: removes files
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end() || limits_.chunks_in_flight_max == 0) {
    ended.push_back({std::move(upload), now_s});
    return;
  }
  std::list<Parked>& parked = at->second.parked;
  parked.push_back({std::move(upload), now_s});
  if (parked.size() > limits_.chunks_in_flight_max) {
    ended.splice(ended.begin(), parked, parked.begin());
  }
}

uint64_t Clients::ParkedBytes(const std::string& host,
                              const ChunkId& chunk) const {
  const std::lock_guard lock(mutex_);
  const auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    return 0;
  }
  uint64_t bytes = 0;
  for (const Parked& each : at->second.parked) {
    if (each.upload.chunk().id == chunk) {
      bytes = std::max(bytes, each.upload.received_bytes());
    }
  }
  return bytes;
}

void Clients::ExpireHost(Host& host, uint64_t now_s,
                         std::list<Parked>& ended) const {
  std::erase_if(host.bundles, [&](const auto& bundle) {
    return Older(bundle.second.asked_s, limits_.keep_s, now_s);
  });
  while (!host.parked.empty() &&
         Older(host.parked.front().since_s, limits_.keep_s, now_s)) {
    ended.splice(ended.end(), host.parked, host.parked.begin());
  }
}

void Clients::Expire() {
  const uint64_t now_s = now_s_();
  std::list<Parked> ended;  // destroyed after the lock: removes files
  const std::lock_guard lock(mutex_);
  for (auto at = hosts_.begin(); at != hosts_.end();) {
    ExpireHost(at->second, now_s, ended);
    const bool idle = at->second.bundles.empty() && at->second.parked.empty();
    at = idle ? hosts_.erase(at) : std::next(at);
  }
}

size_t Clients::bundles_in_flight() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [name, host] : hosts_) {
    count += host.bundles.size();
  }
  return count;
}

size_t Clients::chunks_parked() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [name, host] : hosts_) {
    count += host.parked.size();
  }
  return count;
}

}  // namespace clew::collector
