// How a chunk store finds what is on disk. All at once when it is opened, or
// while it is used: then whoever names a chunk that ReadAll has not reached
// looks for its file first, so that for a caller the index is always whole.
//
// Invariant: what is in the index is durable under its name, or damaged. A
// chunk's file is looked at under its claim, so it is neither renamed nor
// removed before it is in the index.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "collector/store/chunk_claim.h"
#include "collector/store/chunk_store.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

// Names in a folder, ascending.
Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error) {
    return SystemError(error.value(), fmt::format("cannot list {:?}", folder));
  }
  std::ranges::sort(names);
  return names;
}

// The size of a file that may be a chunk.
std::optional<uint64_t> ChunkSize(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) {
    return std::nullopt;
  }
  const uint64_t size_bytes = fs::file_size(path, error);
  if (error || size_bytes == 0 || size_bytes > kChunkBytes) {
    return std::nullopt;
  }
  return size_bytes;
}

}  // namespace

Status ChunkStore::Recover() {
  const std::string& folder = options_.folder;
  std::error_code error;
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(folder + "/incoming"));
  CLEW_RETURN_IF_ERROR(files_.CreateDirectory(folder + "/incoming"));
  if (!fs::is_directory(folder + "/chunks", error)) {
    CLEW_RETURN_IF_ERROR(files_.CreateDirectory(folder + "/chunks"));
  }
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder));
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder + "/chunks"));
  if (!options_.read_later) {
    CLEW_RETURN_IF_ERROR(ReadAll([] { return true; }));
  }
  return RecoverAside();
}

Status ChunkStore::ReadAll(const std::function<bool()>& go_on) {
  strangers_.clear();
  CLEW_ASSIGN_OR_RETURN(names, NamesIn(options_.folder + "/chunks"));
  for (const std::string& name : names) {
    CLEW_RETURN_IF_ERROR(RecoverShard(name, go_on));
  }
  const std::lock_guard lock(mutex_);
  all_read_ = true;
  return {};
}

void ChunkStore::SetHoldersKnown() {
  const std::lock_guard lock(mutex_);
  holders_known_ = true;
}

// A chunk that was healed is there under both names until this removes the
// other one.
Status ChunkStore::RecoverAside() {
  const std::string folder = options_.folder + "/damaged";
  if (!Exists(folder)) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(files, NamesIn(folder));
  for (const std::string& file : files) {
    const std::string path = fmt::format("{}/{}", folder, file);
    const auto id = ChunkId::Parse(file);
    const auto size_bytes = ChunkSize(path);
    if (!id || !size_bytes) {
      strangers_.push_back(path);
      continue;
    }
    Learn(*id);
    if (chunks_.contains(*id)) {
      CLEW_RETURN_IF_ERROR(files_.RemoveAll(path));
    } else {
      chunks_[*id] = {.size_bytes = *size_bytes, .asked_s = options_.now_s()};
      damaged_[*id] = fmt::format("{:?} was set aside", path);
      budget_.TakeAnyway(*size_bytes);
    }
  }
  return {};
}

Status ChunkStore::SyncShard(const std::string& name) {
  const std::lock_guard lock(shards_mutex_);
  if (shards_.contains(name)) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(
      files_.SyncDirectory(options_.folder + "/chunks/" + name));
  shards_.insert(name);
  return {};
}

Status ChunkStore::RecoverShard(const std::string& name,
                                const std::function<bool()>& go_on) {
  const std::string folder = options_.folder + "/chunks/" + name;
  std::error_code error;
  if (name.size() != kShardDigits ||
      !fs::is_directory(fs::symlink_status(folder, error))) {
    strangers_.push_back(folder);
    return {};
  }
  // A collector that was killed may have left names that are not durable.
  CLEW_RETURN_IF_ERROR(SyncShard(name));
  CLEW_ASSIGN_OR_RETURN(files, NamesIn(folder));
  for (const std::string& file : files) {
    if (!go_on()) {
      return SystemError(ECANCELED, "the store is not read to its end");
    }
    if (!RecoverChunk(name, file)) {
      strangers_.push_back(fmt::format("{}/{}", folder, file));
    }
  }
  return {};
}

bool ChunkStore::RecoverChunk(const std::string& shard,
                              const std::string& file) {
  const auto id = ChunkId::Parse(file);
  if (!id || !file.starts_with(shard)) {
    return false;
  }
  Learn(*id);
  return IsInIndex(*id) || !Exists(PathOf(*id));
}

void ChunkStore::Learn(std::span<const ChunkRef> chunks) {
  for (const ChunkRef& chunk : chunks) {
    Learn(chunk.id);
  }
}

void ChunkStore::Learn(const ChunkId& chunk) {
  if (!IsInIndex(chunk)) {
    const Claim claim(*this, chunk);
    LearnClaimed(chunk);
  }
}

// Nobody renames or removes the file meanwhile.
void ChunkStore::LearnClaimed(const ChunkId& chunk) {
  if (IsInIndex(chunk)) {
    return;
  }
  const auto size_bytes = ChunkSize(PathOf(chunk));
  // A name that may not be durable is none.
  if (!size_bytes || !SyncShard(chunk.hex().substr(0, kShardDigits))) {
    return;
  }
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  const Entry found{.size_bytes = *size_bytes, .asked_s = now_s};
  if (chunks_.try_emplace(chunk, found).second) {
    budget_.TakeAnyway(*size_bytes);
  }
}

bool ChunkStore::IsInIndex(const ChunkId& chunk) const {
  const std::lock_guard lock(mutex_);
  return all_read_ || chunks_.contains(chunk);
}

Status ChunkStore::MakeShard(const std::string& name) {
  const std::lock_guard lock(shards_mutex_);
  if (shards_.contains(name)) {
    return {};
  }
  const std::string chunks = options_.folder + "/chunks";
  // Of one that is there the names count from now on.
  std::error_code error;
  if (fs::is_directory(chunks + "/" + name, error)) {
    CLEW_RETURN_IF_ERROR(files_.SyncDirectory(chunks + "/" + name));
  } else {
    CLEW_RETURN_IF_ERROR(files_.CreateDirectory(chunks + "/" + name));
  }
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(chunks));
  shards_.insert(name);
  return {};
}

}  // namespace clew::collector
