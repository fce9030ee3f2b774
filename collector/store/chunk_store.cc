#include "collector/store/chunk_store.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "collector/store/chunk_claim.h"
#include "common/check.h"
#include "common/os/fd.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

Status MakeFolder(FileSystem& files, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return {};
  }
  return files.CreateDirectory(path);
}

// The bytes of the file at `path`, if they are those of `chunk`.
Result<std::vector<std::byte>> ReadSound(const ChunkRef& chunk,
                                         const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(path));
  const ChunkId found(transfer::Sha256Of(bytes));
  if (bytes.size() != chunk.size_bytes || found != chunk.id) {
    return CorruptInput(
        "{:?}: {} bytes with digest {}, wanted {} bytes with the digest of the "
        "name",
        path, bytes.size(), found.hex(), chunk.size_bytes);
  }
  return std::move(bytes);
}

Error DamageError(const ChunkId& chunk, const std::string& why) {
  return CorruptInput(
             "chunk {} is damaged on the collector's disk ({}); sending any "
             "bundle that has it heals it",
             chunk.hex(), why)
      .error();
}

// What the system keeps in memory of a file says nothing of the disk.
void DropCached(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.is_open()) {
    (void)posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);  // a hint
  }
}

}  // namespace

// EUCLEAN and EBADMSG are what ext4 and XFS give for blocks that fail their
// checks (EFSCORRUPTED, EFSBADCRC), EILSEQ is what dm-integrity gives.
bool IsDamage(const Error& error) {
  if (error.code != ErrorCode::kSystem) {
    return true;
  }
  switch (error.sys_errno) {
    case EIO:
    case EILSEQ:
    case EUCLEAN:
    case EBADMSG:
    case ENOENT:
      return true;
    default:
      return false;
  }
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

std::string ChunkStore::PathOf(const ChunkId& chunk) const {
  const std::string name = chunk.hex();
  return options_.folder + "/chunks/" + name.substr(0, kShardDigits) + "/" +
         name;
}

std::string ChunkStore::AsidePath(const ChunkId& chunk) const {
  return options_.folder + "/damaged/" + chunk.hex();
}

std::optional<ChunkRef> ChunkStore::StoredAs(const ChunkId& chunk) const {
  const std::lock_guard lock(mutex_);
  const auto at = chunks_.find(chunk);
  if (at == chunks_.end()) {
    return std::nullopt;
  }
  return ChunkRef{.id = chunk, .size_bytes = at->second.size_bytes};
}

bool ChunkStore::IsDamaged(const ChunkId& chunk) const {
  const std::lock_guard lock(mutex_);
  return damaged_.contains(chunk);
}

std::string ChunkStore::NewIncomingPath() {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}/incoming/{}", options_.folder, next_incoming_++);
}

void ChunkStore::SetSound(const ChunkId& chunk) {
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  if (const auto at = chunks_.find(chunk); at != chunks_.end()) {
    at->second.sound_s = now_s;
  }
}

bool ChunkStore::IsTrusted(const ChunkId& chunk) const {
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  const auto at = chunks_.find(chunk);
  if (at == chunks_.end()) {
    return false;
  }
  const auto& sound_s = at->second.sound_s;
  return sound_s && now_s - *sound_s < kTrust_s;
}

void ChunkStore::Verify(std::span<const ChunkRef> chunks) {
  Learn(chunks);
  for (const ChunkRef& chunk : chunks) {
    const auto stored = StoredAs(chunk.id);
    if (stored && !IsDamaged(chunk.id) && !IsTrusted(chunk.id)) {
      (void)ReadOrSetAside(*stored);  // Missing tells
    }
  }
}

std::vector<ChunkRef> ChunkStore::Missing(std::span<const ChunkRef> chunks) {
  Learn(chunks);
  const uint64_t now_s = options_.now_s();
  const std::lock_guard lock(mutex_);
  std::vector<ChunkRef> missing;
  for (const ChunkRef& chunk : chunks) {
    const auto at = chunks_.find(chunk.id);
    if (at == chunks_.end() || damaged_.contains(chunk.id)) {
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
  if (at == chunks_.end() || damaged_.contains(chunk)) {
    return false;
  }
  at->second.asked_s = now_s;
  return true;
}

Status ChunkStore::Publish(const ChunkRef& chunk, const std::string& path) {
  const Claim claim(*this, chunk.id);
  LearnClaimed(chunk.id);
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
  Enter(chunk);
  return {};
}

void ChunkStore::Enter(const ChunkRef& chunk) {
  const uint64_t now_s = options_.now_s();
  uint64_t aside_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = chunks_[chunk.id];
    if (damaged_.erase(chunk.id) > 0) {
      ++damage_version_;
      aside_bytes = entry.size_bytes;
    }
    entry.size_bytes = chunk.size_bytes;
    entry.asked_s = now_s;
    entry.sound_s = now_s;
  }
  if (aside_bytes > 0) {
    (void)RemoveFile(AsidePath(chunk.id), aside_bytes);  // else by Recover
  }
}

Status ChunkStore::RemoveFile(const std::string& path, uint64_t size_bytes) {
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(path));
  budget_.Return(size_bytes);
  return {};
}

Result<std::vector<std::byte>> ChunkStore::Read(const ChunkRef& chunk) {
  if (IsDamaged(chunk.id)) {
    return std::unexpected(DamageOf(chunk.id));
  }
  auto bytes = ReadSound(chunk, PathOf(chunk.id));
  if (!bytes && IsDamage(bytes.error())) {
    return ReadOrSetAside(chunk);
  }
  if (bytes) {
    SetSound(chunk.id);
  }
  return bytes;
}

// The size in `chunk` may come from a stranger, so the bytes are compared with
// the size that the chunk was stored with.
Result<std::vector<std::byte>> ChunkStore::ReadOrSetAside(
    const ChunkRef& chunk) {
  const Claim claim(*this, chunk.id);
  LearnClaimed(chunk.id);
  const auto stored = StoredAs(chunk.id);
  if (!stored || stored->size_bytes != chunk.size_bytes) {
    return CorruptInput("chunk {}: stored are {} bytes, wanted {}",
                        chunk.id.hex(), stored ? stored->size_bytes : 0,
                        chunk.size_bytes);
  }
  if (IsDamaged(chunk.id)) {
    return std::unexpected(DamageOf(chunk.id));
  }
  auto bytes = ReadSound(chunk, PathOf(chunk.id));
  if (bytes) {
    SetSound(chunk.id);
  }
  if (bytes || !IsDamage(bytes.error())) {
    return bytes;
  }
  const std::string why = bytes.error().message;
  if (const auto place = TakeOut(chunk.id, [](const Entry&) { return true; })) {
    (void)RemoveFile(place->path, place->size_bytes);  // else by the next Open
  } else {
    SetAside(chunk.id, why);
  }
  return std::unexpected(DamageError(chunk.id, why));
}

void ChunkStore::SetAside(const ChunkId& chunk, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    damaged_[chunk] = why;
    ++damage_version_;
  }
  MoveAside(chunk);
}

void ChunkStore::MoveAside(const ChunkId& chunk) {
  // Where the disk cannot do it, the next start has the file under its name
  // again, and finds it damaged again.
  const std::string folder = options_.folder + "/damaged";
  if (MakeFolder(files_, folder) &&
      files_.Rename(PathOf(chunk), AsidePath(chunk))) {
    (void)files_.SyncDirectory(folder);
  }
}

Status ChunkStore::PutBack(const ChunkRef& chunk) {
  const Claim claim(*this, chunk.id);
  if (!IsDamaged(chunk.id)) {
    return {};  // an upload was first
  }
  DropCached(AsidePath(chunk.id));
  if (!ReadSound(chunk, AsidePath(chunk.id))) {
    return std::unexpected(DamageOf(chunk.id));
  }
  CLEW_RETURN_IF_ERROR(Rename(chunk, AsidePath(chunk.id)));
  const std::lock_guard lock(mutex_);
  damaged_.erase(chunk.id);
  ++damage_version_;
  return {};
}

Status ChunkStore::Scrub(const ChunkRef& chunk) {
  if (IsDamaged(chunk.id)) {
    return PutBack(chunk);
  }
  DropCached(PathOf(chunk.id));
  CLEW_RETURN_IF_ERROR(Read(chunk));
  DropCached(PathOf(chunk.id));  // it would push out what others read
  return {};
}

Error ChunkStore::DamageOf(const ChunkId& chunk) const {
  const std::lock_guard lock(mutex_);
  const auto at = damaged_.find(chunk);
  return DamageError(chunk, at == damaged_.end() ? "healed now" : at->second);
}

std::map<ChunkId, std::string> ChunkStore::Damaged() const {
  const std::lock_guard lock(mutex_);
  return damaged_;
}

bool ChunkStore::HasDamage(std::span<const ChunkRef> chunks) const {
  const std::lock_guard lock(mutex_);
  return !damaged_.empty() &&
         std::ranges::any_of(chunks, [&](const ChunkRef& chunk) {
           return damaged_.contains(chunk.id);
         });
}

uint64_t ChunkStore::damage_version() const {
  const std::lock_guard lock(mutex_);
  return damage_version_;
}

Status ChunkStore::Hold(std::span<const ChunkRef> chunks) {
  Learn(chunks);
  std::unique_lock lock(mutex_);
  uint64_t missing = 0;
  std::optional<ChunkId> damaged;
  for (const ChunkRef& chunk : chunks) {
    const auto at = chunks_.find(chunk.id);
    if (at == chunks_.end()) {
      ++missing;
    } else if (damaged_.contains(chunk.id)) {
      damaged = chunk.id;
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
  if (damaged) {
    lock.unlock();
    return std::unexpected(DamageOf(*damaged));
  }
  for (const ChunkRef& chunk : chunks) {
    ++chunks_.find(chunk.id)->second.holders;
  }
  return {};
}

void ChunkStore::HoldStored(std::span<const ChunkRef> chunks) {
  Learn(chunks);
  const uint64_t now_s = options_.now_s();
  std::vector<ChunkId> wrong;
  {
    const std::lock_guard lock(mutex_);
    for (const ChunkRef& chunk : chunks) {
      Entry& entry = chunks_[chunk.id];
      ++entry.holders;
      entry.asked_s = now_s;
      if (entry.size_bytes == chunk.size_bytes) {
        continue;
      }
      budget_.Return(entry.size_bytes);
      budget_.TakeAnyway(chunk.size_bytes);
      const std::string why =
          fmt::format("{:?}: {} bytes, wanted {}", PathOf(chunk.id),
                      entry.size_bytes, chunk.size_bytes);
      entry.size_bytes = chunk.size_bytes;
      if (damaged_.try_emplace(chunk.id, why).second) {
        ++damage_version_;
        wrong.push_back(chunk.id);
      }
    }
  }
  for (const ChunkId& chunk : wrong) {
    SetAsideWrong(chunk);
  }
}

void ChunkStore::SetAsideWrong(const ChunkId& chunk) {
  const Claim claim(*this, chunk);
  if (IsDamaged(chunk)) {  // and not healed meanwhile
    MoveAside(chunk);
  }
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

std::optional<ChunkStore::Place> ChunkStore::TakeOut(const ChunkId& chunk,
                                                     const RemovalRule& rule) {
  const std::lock_guard lock(mutex_);
  const auto at = chunks_.find(chunk);
  if (!holders_known_ || at == chunks_.end() || at->second.holders > 0 ||
      !rule(at->second)) {
    return std::nullopt;
  }
  Place place{.path = PathOf(chunk), .size_bytes = at->second.size_bytes};
  chunks_.erase(at);
  if (damaged_.erase(chunk) > 0) {
    ++damage_version_;
    place.path = AsidePath(chunk);
  }
  return place;
}

Result<size_t> ChunkStore::RemoveUnheld(std::span<const ChunkRef> chunks,
                                        const RemovalRule& rule) {
  size_t removed = 0;
  for (const ChunkRef& chunk : chunks) {
    const Claim claim(*this, chunk.id);
    if (const auto place = TakeOut(chunk.id, rule)) {
      CLEW_RETURN_IF_ERROR(RemoveFile(place->path, place->size_bytes));
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

std::optional<ChunkRef> ChunkStore::After(
    const std::optional<ChunkId>& last) const {
  const std::lock_guard lock(mutex_);
  const auto at = last ? chunks_.upper_bound(*last) : chunks_.begin();
  if (at == chunks_.end()) {
    return std::nullopt;
  }
  return ChunkRef{.id = at->first, .size_bytes = at->second.size_bytes};
}

}  // namespace clew::collector
