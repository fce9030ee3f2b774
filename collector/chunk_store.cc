#include "collector/chunk_store.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "common/check.h"
#include "common/hex.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShardDigits = 2;

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

Status MakeFolder(FileSystem& files, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return {};
  }
  return files.CreateDirectory(path);
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

// The right to rename or remove the file of one chunk.
class ChunkStore::Claim {
 public:
  Claim(ChunkStore& store, const ChunkId& chunk)
      : store_(store), chunk_(chunk) {
    std::unique_lock lock(store_.mutex_);
    store_.claim_ended_.wait(
        lock, [&] { return store_.claimed_.insert(chunk_).second; });
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() {
    {
      const std::lock_guard lock(store_.mutex_);
      store_.claimed_.erase(chunk_);
    }
    store_.claim_ended_.notify_all();
  }

 private:
  ChunkStore& store_;
  const ChunkId chunk_;
};

ChunkUpload::ChunkUpload(ChunkStore& store, const ChunkRef& chunk,
                         std::string path)
    : store_(&store), chunk_(chunk), path_(std::move(path)) {}

ChunkUpload::ChunkUpload(ChunkUpload&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      chunk_(other.chunk_),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      created_(other.created_),
      digest_(std::move(other.digest_)),
      received_bytes_(other.received_bytes_) {}

ChunkUpload::~ChunkUpload() {
  if (store_ == nullptr) {
    return;
  }
  file_.reset();
  if (created_) {
    (void)store_->RemoveFile(path_, chunk_.size_bytes);  // nobody left to tell
  } else {
    store_->budget_.Return(chunk_.size_bytes);
  }
}

void ChunkUpload::StartAnew() {
  file_.reset();
  digest_ = Sha256();
  received_bytes_ = 0;
}

Status ChunkUpload::Put(uint64_t offset, std::span<const std::byte> bytes) {
  CLEW_CHECK(store_ != nullptr, "a part for a finished upload");
  if (offset > received_bytes_) {
    return InvalidArgument(
        "chunk {}: part at offset {}, received are {} bytes; send from there",
        chunk_.id.hex(), offset, received_bytes_);
  }
  if (bytes.size() > chunk_.size_bytes - offset) {
    return InvalidArgument(
        "chunk {}: part of {} bytes at offset {}, the chunk has {} bytes",
        chunk_.id.hex(), bytes.size(), offset, chunk_.size_bytes);
  }
  const uint64_t known = received_bytes_ - offset;
  if (bytes.size() <= known) {
    return {};
  }
  const auto fresh = bytes.subspan(known);
  if (file_ == nullptr) {
    created_ = true;  // perhaps, even if it fails
    CLEW_ASSIGN_OR_RETURN(file, store_->files_.Create(path_));
    file_ = std::move(file);
  }
  if (Status written = file_->Append(fresh); !written) {
    StartAnew();
    return written;
  }
  digest_.Add(fresh);
  received_bytes_ += fresh.size();
  return {};
}

Status ChunkUpload::Finish() {
  CLEW_CHECK(store_ != nullptr, "an upload finished twice");
  if (received_bytes_ < chunk_.size_bytes) {
    return InvalidArgument(
        "chunk {}: finished after {} of {} bytes; send from there",
        chunk_.id.hex(), received_bytes_, chunk_.size_bytes);
  }
  const ChunkId found(digest_.Finish());
  const Status synced = found == chunk_.id ? file_->Sync() : Status();
  StartAnew();
  if (found != chunk_.id || !synced) {
    (void)store_->files_.RemoveAll(path_);  // the next part truncates it
  }
  if (found != chunk_.id) {
    return CorruptInput(
        "chunk {}: the {} bytes sent have digest {}; send it again from its "
        "start",
        chunk_.id.hex(), chunk_.size_bytes, found.hex());
  }
  CLEW_RETURN_IF_ERROR(synced);
  CLEW_RETURN_IF_ERROR(store_->Publish(chunk_, path_));
  store_ = nullptr;
  return {};
}

Result<std::unique_ptr<ChunkStore>> ChunkStore::Open(FileSystem& files,
                                                     DiskBudget& budget,
                                                     Options options) {
  CLEW_CHECK(options.now_s != nullptr, "a chunk store without a clock");
  std::unique_ptr<ChunkStore> store(
      new ChunkStore(files, budget, std::move(options)));
  CLEW_RETURN_IF_ERROR(store->Recover());
  return store;
}

Status ChunkStore::Recover() {
  const std::string& folder = options_.folder;
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(folder + "/incoming"));
  CLEW_RETURN_IF_ERROR(files_.CreateDirectory(folder + "/incoming"));
  CLEW_RETURN_IF_ERROR(MakeFolder(files_, folder + "/chunks"));
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder));
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder + "/chunks"));
  CLEW_ASSIGN_OR_RETURN(names, NamesIn(folder + "/chunks"));
  for (const std::string& name : names) {
    CLEW_RETURN_IF_ERROR(RecoverShard(name));
  }
  return {};
}

Status ChunkStore::RecoverShard(const std::string& name) {
  const std::string folder = options_.folder + "/chunks/" + name;
  std::error_code error;
  if (name.size() != kShardDigits ||
      !fs::is_directory(fs::symlink_status(folder, error))) {
    strangers_.push_back(folder);
    return {};
  }
  // A collector that was killed may have left names that are not durable.
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder));
  shards_.insert(name);
  CLEW_ASSIGN_OR_RETURN(files, NamesIn(folder));
  for (const std::string& file : files) {
    const std::string path = fmt::format("{}/{}", folder, file);
    const auto id = ChunkId::Parse(file);
    const auto size_bytes = ChunkSize(path);
    if (!id || !size_bytes || !file.starts_with(name)) {
      strangers_.push_back(path);
      continue;
    }
    chunks_[*id] = {.size_bytes = *size_bytes, .asked_s = options_.now_s()};
    budget_.TakeAnyway(*size_bytes);
  }
  return {};
}

std::string ChunkStore::PathOf(const ChunkId& chunk) const {
  const std::string name = chunk.hex();
  return options_.folder + "/chunks/" + name.substr(0, kShardDigits) + "/" +
         name;
}

std::string ChunkStore::NewIncomingPath() {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}/incoming/{}", options_.folder, next_incoming_++);
}

std::vector<ChunkRef> ChunkStore::Missing(std::span<const ChunkRef> chunks) {
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  std::vector<ChunkRef> missing;
  for (const ChunkRef& chunk : chunks) {
    const auto at = chunks_.find(chunk.id);
    if (at == chunks_.end()) {
      missing.push_back(chunk);
    } else {
      at->second.asked_s = now_s;
    }
  }
  return missing;
}

Result<ChunkUpload> ChunkStore::Begin(const ChunkRef& chunk) {
  if (chunk.size_bytes == 0 || chunk.size_bytes > kChunkBytes) {
    return InvalidArgument("chunk {}: size is {}, wanted 1..{}", chunk.id.hex(),
                           chunk.size_bytes, kChunkBytes);
  }
  CLEW_RETURN_IF_ERROR(
      budget_.Take(chunk.size_bytes, "chunk " + chunk.id.hex()));
  return ChunkUpload(*this, chunk, NewIncomingPath());
}

Status ChunkStore::MakeShard(const std::string& name) {
  const std::lock_guard lock(shards_mutex_);
  if (shards_.contains(name)) {
    return {};
  }
  const std::string chunks = options_.folder + "/chunks";
  CLEW_RETURN_IF_ERROR(MakeFolder(files_, chunks + "/" + name));
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(chunks));
  shards_.insert(name);
  return {};
}

Status ChunkStore::Rename(const ChunkRef& chunk, const std::string& path) {
  const std::string name = chunk.id.hex().substr(0, kShardDigits);
  CLEW_RETURN_IF_ERROR(MakeShard(name));
  CLEW_RETURN_IF_ERROR(files_.Rename(path, PathOf(chunk.id)));
  return files_.SyncDirectory(options_.folder + "/chunks/" + name);
}

bool ChunkStore::AskFor(const ChunkId& chunk) {
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  const auto at = chunks_.find(chunk);
  if (at == chunks_.end()) {
    return false;
  }
  at->second.asked_s = now_s;
  return true;
}

Status ChunkStore::Publish(const ChunkRef& chunk, const std::string& path) {
  const Claim claim(*this, chunk.id);
  if (AskFor(chunk.id)) {
    (void)RemoveFile(path, chunk.size_bytes);  // another writer was first
    return {};
  }
  if (Status renamed = Rename(chunk, path); !renamed) {
    (void)files_.RemoveAll(path);
    if (!files_.RemoveAll(PathOf(chunk.id))) {
      budget_.TakeAnyway(chunk.size_bytes);  // it may be there
    }
    return renamed;
  }
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  chunks_[chunk.id] = {.size_bytes = chunk.size_bytes, .asked_s = now_s};
  return {};
}

Status ChunkStore::RemoveFile(const std::string& path, uint64_t size_bytes) {
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(path));
  budget_.Return(size_bytes);
  return {};
}

Result<std::vector<std::byte>> ChunkStore::Read(const ChunkRef& chunk) {
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(PathOf(chunk.id)));
  if (bytes.size() != chunk.size_bytes ||
      ChunkId(transfer::Sha256Of(bytes)) != chunk.id) {
    return CorruptInput(
        "{:?}: {} bytes with digest {}, wanted {} bytes with the digest of the "
        "name; the disk lost or changed them, remove the bundle and send it "
        "again",
        PathOf(chunk.id), bytes.size(), ToHex(transfer::Sha256Of(bytes)),
        chunk.size_bytes);
  }
  return std::move(bytes);
}

Status ChunkStore::Hold(std::span<const ChunkRef> chunks) {
  const std::lock_guard lock(mutex_);
  uint64_t missing = 0;
  for (const ChunkRef& chunk : chunks) {
    const auto at = chunks_.find(chunk.id);
    if (at == chunks_.end()) {
      ++missing;
    } else if (at->second.size_bytes != chunk.size_bytes) {
      return CorruptInput("chunk {}: stored are {} bytes, the list says {}",
                          chunk.id.hex(), at->second.size_bytes,
                          chunk.size_bytes);
    }
  }
  if (missing > 0) {
    return InvalidArgument("{} of {} chunks are missing; send them first",
                           missing, chunks.size());
  }
  for (const ChunkRef& chunk : chunks) {
    ++chunks_.find(chunk.id)->second.holders;
  }
  return {};
}

void ChunkStore::Release(std::span<const ChunkRef> chunks) {
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  for (const ChunkRef& chunk : chunks) {
    const auto at = chunks_.find(chunk.id);
    CLEW_CHECK(at != chunks_.end() && at->second.holders > 0,
               "chunk {} is not held", chunk.id.hex());
    --at->second.holders;
    at->second.asked_s = now_s;
  }
}

std::optional<uint64_t> ChunkStore::TakeOut(const ChunkId& chunk,
                                            const RemovalRule& rule) {
  const std::lock_guard lock(mutex_);
  const auto at = chunks_.find(chunk);
  if (at == chunks_.end() || at->second.holders > 0 || !rule(at->second)) {
    return std::nullopt;
  }
  const uint64_t size_bytes = at->second.size_bytes;
  chunks_.erase(at);
  return size_bytes;
}

Result<size_t> ChunkStore::RemoveUnheld(std::span<const ChunkRef> chunks,
                                        const RemovalRule& rule) {
  size_t removed = 0;
  for (const ChunkRef& chunk : chunks) {
    const Claim claim(*this, chunk.id);
    if (const auto size_bytes = TakeOut(chunk.id, rule)) {
      CLEW_RETURN_IF_ERROR(RemoveFile(PathOf(chunk.id), *size_bytes));
      ++removed;
    }
  }
  return removed;
}

Status ChunkStore::Drop(std::span<const ChunkRef> chunks) {
  CLEW_RETURN_IF_ERROR(RemoveUnheld(chunks, [](const Entry&) { return true; }));
  return {};
}

Result<size_t> ChunkStore::Expire() {
  const uint64_t now_s = options_.now_s();
  return RemoveUnheld(Unheld(), [&](const Entry& entry) {
    return now_s >= entry.asked_s && now_s - entry.asked_s >= options_.keep_s;
  });
}

std::vector<ChunkRef> ChunkStore::Unheld() const {
  const std::lock_guard lock(mutex_);
  std::vector<ChunkRef> unheld;
  for (const auto& [id, entry] : chunks_) {
    if (entry.holders == 0) {
      unheld.push_back({.id = id, .size_bytes = entry.size_bytes});
    }
  }
  return unheld;
}

}  // namespace clew::collector
