#include "collector/store/schedule_store.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "transfer/protocol.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pb";

// nullopt: no name that a schedule has.
std::optional<BundleId> ParseName(const std::string& name) {
  if (!name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  return BundleId::Parse(
      std::string_view(name).substr(0, name.size() - kSuffix.size()));
}

}  // namespace

Result<std::unique_ptr<ScheduleStore>> ScheduleStore::Open(
    FileSystem& files, const std::string& folder) {
  std::unique_ptr<ScheduleStore> store(new ScheduleStore(files, folder));
  CLEW_RETURN_IF_ERROR(store->Recover());
  return store;
}

Status ScheduleStore::Recover() {
  std::error_code error;
  if (!fs::is_directory(folder_, error)) {
    CLEW_RETURN_IF_ERROR(files_.CreateDirectory(folder_));
    CLEW_RETURN_IF_ERROR(
        files_.SyncDirectory(fs::path(folder_).parent_path().string()));
  }
  for (auto it = fs::directory_iterator(folder_, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    const auto id = ParseName(it->path().filename().string());
    if (id) {
      std::error_code no_size;
      const uint64_t size_bytes = it->file_size(no_size);
      sizes_[*id] = no_size ? 0 : size_bytes;
    } else if (it->path().extension() == ".partial") {
      CLEW_RETURN_IF_ERROR(files_.RemoveAll(it->path().string()));
    }
  }
  if (error) {
    return SystemError(error.value(), "cannot list " + folder_);
  }
  // Names that are visible are not yet durable: see BundleStore.
  return files_.SyncDirectory(folder_);
}

std::string ScheduleStore::PathOf(const BundleId& id) const {
  return fmt::format("{}/{}{}", folder_, id.hex(), kSuffix);
}

Status ScheduleStore::Put(const BundleId& id,
                          std::span<const std::byte> bytes) {
  if (bytes.size() > transfer::kScheduleBytesMax) {
    return LimitReached("schedule of bundle {}: {} bytes, at most {} are kept",
                        id.hex(), bytes.size(), transfer::kScheduleBytesMax);
  }
  const std::lock_guard lock(mutex_);
  const std::string partial = PathOf(id) + ".partial";
  CLEW_RETURN_IF_ERROR(WriteWholeFile(files_, partial, bytes));
  CLEW_RETURN_IF_ERROR(files_.Rename(partial, PathOf(id)));
  sizes_[id] = bytes.size();
  return files_.SyncDirectory(folder_);
}

Result<std::optional<std::vector<std::byte>>> ScheduleStore::Read(
    const BundleId& id) const {
  const std::lock_guard lock(mutex_);
  if (!sizes_.contains(id)) {
    return std::nullopt;
  }
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(PathOf(id)));
  return std::optional(std::move(bytes));
}

Status ScheduleStore::Remove(const BundleId& id) {
  const std::lock_guard lock(mutex_);
  if (!sizes_.contains(id)) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(PathOf(id)));
  sizes_.erase(id);
  return files_.SyncDirectory(folder_);
}

std::vector<BundleId> ScheduleStore::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<BundleId> ids;
  ids.reserve(sizes_.size());
  for (const auto& [id, size_bytes] : sizes_) {
    ids.push_back(id);
  }
  return ids;
}

uint64_t ScheduleStore::used_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (const auto& [id, size_bytes] : sizes_) {
    total += size_bytes;
  }
  return total;
}

}  // namespace clew::collector
