#ifndef CLEW_COLLECTOR_STORE_CHUNK_STORE_H_
#define CLEW_COLLECTOR_STORE_CHUNK_STORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collector/store/disk_budget.h"
#include "common/os/file.h"
#include "common/result.h"
#include "transfer/file_list.h"
#include "transfer/sha256.h"

namespace clew::collector {

// What travels has its types in transfer/.
using transfer::BundleId;
using transfer::ChunkId;
using transfer::ChunkRef;
using transfer::FileEntry;
using transfer::FileList;
using transfer::FileListLimits;
using transfer::kChunkBytes;
using transfer::Sha256;

class ChunkStore;

// A chunk on its way in, held by one client; another one that sends the same
// chunk has an upload of its own, so neither can spoil the other's. Outlives a
// broken connection: the client asks received_bytes() and goes on from there.
// If it is destroyed before Finish, nothing stays. Not thread-safe. Moves.
class ChunkUpload {
 public:
  ChunkUpload(ChunkUpload&& other) noexcept;
  ChunkUpload& operator=(ChunkUpload&&) = delete;
  ChunkUpload(const ChunkUpload&) = delete;
  ChunkUpload& operator=(const ChunkUpload&) = delete;
  ~ChunkUpload();

  const ChunkRef& chunk() const { return chunk_; }
  uint64_t received_bytes() const { return received_bytes_; }

  // Takes the part of the chunk that begins at `offset`. What was received
  // before is skipped, so a part may be repeated. Fails with kInvalidArgument,
  // leaving the upload as it was, if `offset` is after what was received or the
  // part goes beyond the end; with kSystem, and begins again at offset 0, if
  // the part cannot be written.
  [[nodiscard]] Status Put(uint64_t offset, std::span<const std::byte> bytes);
  // Puts the chunk into the store and on stable storage; nothing may be called
  // afterwards. Fails with kInvalidArgument, leaving the upload as it was, if
  // bytes are missing; with kCorruptInput if the digest is not the chunk's
  // name; with kSystem if it cannot be made durable. After these two the upload
  // begins again at offset 0.
  [[nodiscard]] Status Finish();

 private:
  friend class ChunkStore;
  ChunkUpload(ChunkStore& store, const ChunkRef& chunk, std::string path);
  // Removes what was written; received_bytes() is 0 afterwards.
  void StartAnew();

  ChunkStore* store_;  // nullptr: moved from, or finished
  ChunkRef chunk_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;  // made by the first part
  bool created_ = false;                // something may be at path_
  Sha256 digest_;
  uint64_t received_bytes_ = 0;
};

// Returns whether an error of a read says that the disk lost or changed the
// bytes, and not that the system has no memory or descriptors for the moment.
bool IsDamage(const Error& error);

// Chunks under their names:
//
//     <folder>/incoming/<number>      being written; removed when opened
//     <folder>/chunks/ab/<sha256>     whole, synced before it got the name
//     <folder>/damaged/<sha256>       set aside: not the bytes of its name
//
// A chunk is in the store from the moment its name is durable. It stays while
// anybody holds it, and for `keep_s` after somebody asked for it.
//
// A damaged chunk is one that bundles need and whose bytes the disk lost,
// changed or cannot read. It is missing for whoever asks, so the next upload of
// any bundle with it brings it again and heals all that hold it; what is left
// of it is set aside until then.
// Thread-safe. One at a time for a folder (BundleStore locks it).
class ChunkStore {
 public:
  static constexpr uint64_t kKeepDay_s = 24 * 60 * 60;
  static constexpr uint64_t kTrust_s = 24 * 60 * 60;
  struct Options {
    std::string folder;
    uint64_t keep_s = kKeepDay_s;
    std::function<uint64_t()> now_s;  // never goes back
    // Open leaves ReadAll and SetHoldersKnown to the caller.
    bool read_later = false;
  };

  // Finds the chunks that are there; every name that it finds is durable
  // afterwards. All chunks count as asked for now. Fails with kSystem if a
  // folder cannot be read or synced. REQUIRES: options.folder exists and is
  // durable; `files` and `budget` outlive the store.
  [[nodiscard]] static Result<std::unique_ptr<ChunkStore>> Open(
      FileSystem& files, DiskBudget& budget, Options options);
  // Finds every chunk. Before, a chunk that is named is looked up by its file,
  // and the budget, After and Unheld know only what was found so far. Fails
  // with kSystem if a folder cannot be read, and (ECANCELED) if `go_on`, which
  // is asked often, returns false; it may then be called again.
  [[nodiscard]] Status ReadAll(const std::function<bool()>& go_on);
  // Says that every list was read, so that chunks without a holder may be
  // removed; before, none is.
  void SetHoldersKnown();

  // Reads those of `chunks` that are here and that nobody has read or written
  // for kTrust_s; the damaged ones are missing afterwards. To be called before
  // a client is told that they need not be sent. A chunk that cannot be tried
  // stays.
  void Verify(std::span<const ChunkRef> chunks);
  // Returns those of `chunks` that must be sent, in order; the others count as
  // asked for now.
  std::vector<ChunkRef> Missing(std::span<const ChunkRef> chunks);
  // Begins an upload, which the store must outlive. Fails with kLimit if the
  // budget is exceeded, and with kInvalidArgument if no chunk has that size.
  [[nodiscard]] Result<ChunkUpload> Begin(const ChunkRef& chunk);
  // Returns the bytes, after checking their digest. Fails with kCorruptInput if
  // they are not those of that name or the disk cannot read them: the chunk is
  // damaged from then on; with kSystem if it is not there or cannot be read for
  // another reason.
  [[nodiscard]] Result<std::vector<std::byte>> Read(const ChunkRef& chunk);

  // Keeps all of `chunks` until Release, or none. Fails with kInvalidArgument
  // if some are missing, and with kCorruptInput if one is damaged or has
  // another size. REQUIRES: each is named once.
  [[nodiscard]] Status Hold(std::span<const ChunkRef> chunks);
  // Does the same for a list that was stored before this start: a chunk that it
  // names and that is not there, or has another size, is damaged.
  void HoldStored(std::span<const ChunkRef> chunks);
  // Undoes one Hold. REQUIRES: `chunks` are held.
  void Release(std::span<const ChunkRef> chunks);

  // Removes those of `chunks` that are not held.
  [[nodiscard]] Status Drop(std::span<const ChunkRef> chunks);
  // Removes chunks that are not held and were not asked for within keep_s.
  // Returns how many. On kSystem the rest is still there.
  [[nodiscard]] Result<size_t> Expire();

  // Returns the chunks that are not held, ascending.
  std::vector<ChunkRef> Unheld() const;
  // Returns the first chunk after `last`, by id; the first of all if `last` is
  // nullopt; nullopt if there is none.
  std::optional<ChunkRef> After(const std::optional<ChunkId>& last) const;

  // Reads a chunk from the disk, not from the system's memory. A damaged one
  // whose bytes are right after all (the disk could not read them for a while)
  // is put back. Fails with kCorruptInput if the chunk is damaged, as it counts
  // from then on; it is removed if nobody holds it. Fails with kSystem if it
  // could not be tried or is gone.
  [[nodiscard]] Status Scrub(const ChunkRef& chunk);
  bool HasDamage(std::span<const ChunkRef> chunks) const;
  // Returns what was found damaged and is not healed, and why.
  std::map<ChunkId, std::string> Damaged() const;
  // Returns another number after every change of Damaged().
  uint64_t damage_version() const;
  // Files below chunks/ that are not chunks. Open and ReadAll find them and
  // leave them alone. REQUIRES: ReadAll does not run.
  const std::vector<std::string>& strangers() const { return strangers_; }
  std::string PathOf(const ChunkId& chunk) const;
  // Returns a path for a file that is written and then renamed; another one
  // each time.
  std::string NewIncomingPath();

 private:
  friend class ChunkUpload;
  struct Entry {
    uint64_t size_bytes = 0;
    uint64_t holders = 0;
    uint64_t asked_s = 0;
    std::optional<uint64_t> sound_s{};  // when its bytes were right
  };
  class Claim;
  static constexpr size_t kShardDigits = 2;
  using RemovalRule = std::function<bool(const Entry&)>;

  ChunkStore(FileSystem& files, DiskBudget& budget, Options options)
      : files_(files),
        budget_(budget),
        options_(std::move(options)),
        holders_known_(!options_.read_later) {}

  [[nodiscard]] Status Recover();
  [[nodiscard]] Status RecoverShard(const std::string& name,
                                    const std::function<bool()>& go_on);
  // Returns false if the file is not a chunk. REQUIRES: its shard is durable.
  bool RecoverChunk(const std::string& shard, const std::string& file);
  [[nodiscard]] Status MakeShard(const std::string& name);
  // The names in it are durable afterwards; nothing the second time.
  [[nodiscard]] Status SyncShard(const std::string& name);
  // Puts chunks in the index that are on disk and that ReadAll has not reached.
  void Learn(std::span<const ChunkRef> chunks);
  void Learn(const ChunkId& chunk);
  // REQUIRES: claimed.
  void LearnClaimed(const ChunkId& chunk);
  bool IsInIndex(const ChunkId& chunk) const;  // or nothing else is on disk
  // Gives the synced file at `path` the name of `chunk`, unless another writer
  // did so before. On failure the file is gone or left to Recover.
  [[nodiscard]] Status Publish(const ChunkRef& chunk, const std::string& path);
  [[nodiscard]] Status Rename(const ChunkRef& chunk, const std::string& path);
  // Removes a file that is not in the index and gives its bytes back; where it
  // cannot be removed they stay counted until the next Open.
  [[nodiscard]] Status RemoveFile(const std::string& path, uint64_t size_bytes);
  // False if it is not there, or damaged.
  bool AskFor(const ChunkId& chunk);
  // What a chunk's file is, and what it counts in the budget.
  struct Place {
    std::string path;
    uint64_t size_bytes = 0;
  };
  // Takes a chunk that nobody holds and that `rule` gives up out of the index;
  // nullopt if it stays. REQUIRES: claimed.
  std::optional<Place> TakeOut(const ChunkId& chunk, const RemovalRule& rule);
  // The chunk was written anew: what was set aside of it goes.
  // REQUIRES: claimed.
  void Enter(const ChunkRef& chunk);

  std::string AsidePath(const ChunkId& chunk) const;
  [[nodiscard]] Status RecoverAside();
  // Reads once more while nobody replaces it, and sets it aside if it is not
  // right. Errors as Read.
  [[nodiscard]] Result<std::vector<std::byte>> ReadOrSetAside(
      const ChunkRef& chunk);
  // REQUIRES: claimed.
  void SetAside(const ChunkId& chunk, const std::string& why);
  [[nodiscard]] Status PutBack(const ChunkRef& chunk);
  // Of what is marked. REQUIRES: claimed.
  void MoveAside(const ChunkId& chunk);
  // The file is not what a list needs, and a list counts more than a file.
  void SetAsideWrong(const ChunkId& chunk);
  [[nodiscard]] Error DamageOf(const ChunkId& chunk) const;
  // With its size; nullopt: not in the index.
  std::optional<ChunkRef> StoredAs(const ChunkId& chunk) const;
  void SetSound(const ChunkId& chunk);
  bool IsTrusted(const ChunkId& chunk) const;
  bool IsDamaged(const ChunkId& chunk) const;
  [[nodiscard]] Result<size_t> RemoveUnheld(std::span<const ChunkRef> chunks,
                                            const RemovalRule& rule);

  FileSystem& files_;
  DiskBudget& budget_;
  const Options options_;
  std::vector<std::string> strangers_;

  mutable std::mutex mutex_;  // for all below, never held over I/O
  std::condition_variable claim_ended_;
  std::map<ChunkId, Entry> chunks_;
  std::map<ChunkId, std::string> damaged_;  // of chunks_, and why
  uint64_t damage_version_ = 0;
  std::set<ChunkId> claimed_;  // names that one thread renames or removes
  uint64_t next_incoming_ = 0;
  bool all_read_ = false;  // each chunk on disk is in chunks_
  bool holders_known_;

  std::mutex shards_mutex_;       // held over I/O
  std::set<std::string> shards_;  // folders below chunks/, durable
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_CHUNK_STORE_H_
