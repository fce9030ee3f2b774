#ifndef CLEW_COLLECTOR_STORE_BUNDLE_STORE_H_
#define CLEW_COLLECTOR_STORE_BUNDLE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/store/chunk_store.h"
#include "collector/store/disk_budget.h"
#include "collector/store/stored_list.h"
#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/result.h"
#include "transfer/file_list.h"
#include "transfer/sha256.h"

namespace clew::collector {

struct StoredBundle {
  BundleId id;
  uint64_t size_bytes = 0;  // of its files; chunks may be shared
  size_t file_count = 0;
};

// What BundleStore::Check found. Sound if `faults` is empty.
struct StoreReport {
  size_t bundles = 0;
  uint64_t bytes_read = 0;
  std::vector<std::string> faults;  // one line each: what, where
  std::vector<ChunkRef> orphans;    // whole or not; no bundle needs them
};

// How whole a store is.
struct StoreHealth {
  uint64_t damaged_chunks = 0;
  uint64_t damaged_bundles = 0;  // that need them, or whose list is damaged
  // When every byte had been read once more, since 1970; 0: never.
  int64_t last_scrub_s = 0;
};

// The bundles of a collector, in one folder:
//
//     <folder>/lock                   held while the store is open
//     <folder>/bundles/<id>.pb        a file list; its rename is the commit
//     <folder>/chunks, incoming, damaged   see ChunkStore
//
// A bundle is listed only when its list and all its chunks are on stable
// storage; one that Commit returned is there after any crash. A bundle is
// damaged while the disk has lost its list or a chunk of it: it stays listed if
// its list can be read, and is whole again once its chunks were sent again,
// with whichever bundle. Thread-safe.
class BundleStore {
 public:
  struct Options {
    std::string folder;
    uint64_t budget_bytes = 0;
    uint64_t keep_s = ChunkStore::kKeepDay_s;
    std::function<uint64_t()> now_s;  // never goes back
    FileListLimits limits;
    // Open leaves ReadAll and AllowRemovals to the caller.
    bool read_later = false;
  };

  // Makes the folder if there is none, and recovers what a crash left. `files`
  // must outlive the store. Fails with kInvalidArgument if another collector
  // has the folder open, and with kSystem if it cannot be read or written.
  [[nodiscard]] static Result<std::unique_ptr<BundleStore>> Open(
      FileSystem& files, const Options& options);
  BundleStore(const BundleStore&) = delete;
  BundleStore& operator=(const BundleStore&) = delete;

  // Reads every list and finds every chunk, while others use the store. Until
  // it has succeeded, a bundle is read when somebody names it, and `List`,
  // `WithoutReceipt`, `used_bytes` and what is damaged know only what was read
  // so far. Fails with kSystem if a folder cannot be read, and (ECANCELED) if
  // `go_on`, which is asked often, returns false; it may then be called again.
  // One thread at a time.
  [[nodiscard]] Status ReadAll(const std::function<bool()>& go_on);
  bool IsAllRead() const;
  // Lets Remove work. Before, it refuses: the catalogue is still being compared
  // with the store, and what was removed meanwhile would come back.
  // REQUIRES: IsAllRead().
  void AllowRemovals();
  // Reads the list of a bundle that ReadAll has not reached, so that its damage
  // is known.
  void Learn(const BundleId& id);

  ChunkStore& chunks() { return *chunks_; }
  uint64_t used_bytes() const { return budget_.used_bytes(); }
  uint64_t limit_bytes() const { return budget_.limit_bytes(); }

  // Stores the bundle. Succeeds also if it is there already; the receipt of the
  // first commit stays. Fails with kInvalidArgument if chunks are missing, with
  // kCorruptInput if a chunk is stored with another size, with kLimit if the
  // budget is exceeded, and with kSystem if the list cannot be made durable:
  // the bundle may then be there after a restart, and is whole if it is.
  [[nodiscard]] Status Commit(const FileList& list,
                              const Receipt& receipt = {});
  // Returns nullopt if the bundle was stored before there were receipts. Fails
  // as ReadList does.
  [[nodiscard]] Result<std::optional<Receipt>> ReadReceipt(
      const BundleId& id) const;
  // Gives a bundle without a receipt one. Fails with kInvalidArgument if there
  // is no such bundle.
  [[nodiscard]] Status AddReceipt(const BundleId& id, const Receipt& receipt);
  // Returns the bundles without a receipt, ascending.
  std::vector<BundleId> WithoutReceipt() const;
  // Returns whether the bundle is there and, as far as is known, nothing that
  // it needs is damaged. Reads its list; if that is damaged it is known
  // afterwards, and the next Commit writes it again.
  bool IsWhole(const BundleId& id);
  // Returns the bundles, ascending by id.
  std::vector<StoredBundle> List() const;
  // Returns the bundles whose id begins with these digits, ascending, also
  // before all is read. Fails with kSystem if the folder cannot be read.
  [[nodiscard]] Result<std::vector<BundleId>> WithPrefix(
      std::string_view digits) const;
  // Reads the bundle's list. Fails with kInvalidArgument if there is no such
  // bundle, and with kCorruptInput if the list is damaged.
  [[nodiscard]] Result<FileList> ReadList(const BundleId& id) const;
  // What is written for one job alone need not outlive a power cut.
  enum class Sync : uint8_t { kEverything, kNothing };
  // Writes the bundle's folder as `out`, by way of `out`.partial: whole and
  // durable, or not there; with Sync::kNothing a power cut may take any of it.
  // Copies: with a hard link, a write to the folder would change the store.
  // Fails with kInvalidArgument if there is no such bundle or `out` exists, and
  // with kCorruptInput if a chunk is damaged. REQUIRES: nobody else writes
  // `out`, and `out` has a parent folder.
  [[nodiscard]] Status Materialise(const BundleId& id, const std::string& out,
                                   Sync sync = Sync::kEverything);
  // Removes a bundle and the chunks that no other bundle needs; those of a
  // damaged list stay for Expire. Fails with kInvalidArgument if there is no
  // such bundle, with kSystem if the removal cannot be made durable, and as
  // CheckRemovable does; the caller may try again.
  [[nodiscard]] Status Remove(const BundleId& id);
  // Fails with kSystem (EAGAIN) before AllowRemovals.
  [[nodiscard]] Status CheckRemovable() const;
  // Removes chunks that no bundle needs and no client asked for lately. Removes
  // none while a list is damaged or not read, since what it needs is not known.
  [[nodiscard]] Result<size_t> Expire();
  // Reads every byte of every bundle. Bundles that come or go meanwhile may be
  // left out.
  [[nodiscard]] StoreReport Check();
  // Returns the damaged lists, by file name, and what is wrong with each.
  std::map<std::string, std::string> Damaged() const;
  // Returns whether damage of the bundle is known: Scrubber looks for it.
  bool IsDamaged(const BundleId& id) const;
  // Returns the damaged bundles, ascending by id. Cost: once after each change,
  // every chunk of every bundle is looked at if there is damage at all.
  std::vector<BundleId> DamagedBundles() const;
  StoreHealth Health() const;
  void SetScrubbed(int64_t wall_s);

 private:
  BundleStore(FileSystem& files, const Options& options, Fd lock);
  struct Bundle {
    uint64_t size_bytes = 0;
    size_t file_count = 0;
    std::vector<ChunkRef> chunks;  // held
    uint64_t list_bytes = 0;       // taken from the budget
    // False: a commit or a removal failed; the list may or may not be there.
    bool listed = false;
    bool has_receipt = false;
  };

  [[nodiscard]] Status Recover();
  // Puts the list of that file name in the index, or in damaged_, unless it is
  // there or gone.
  void RecoverList(const std::string& name);
  // REQUIRES: change_mutex_ is held.
  void LearnLocked(const BundleId& id, Result<StoredList> stored);
  bool IsInIndex(const BundleId& id) const;  // or nothing else is on disk
  [[nodiscard]] Status TakeIn(const FileList& list, uint64_t list_bytes);
  // Its chunks are held.
  void Add(const FileList& list, std::vector<ChunkRef> chunks,
           uint64_t list_bytes);
  [[nodiscard]] Status WriteList(const BundleId& id,
                                 std::span<const std::byte> bytes);
  [[nodiscard]] Result<StoredList> ReadStored(const BundleId& id) const;
  void GiveUp(const BundleId& id);
  // Releases the chunks of a bundle whose list is gone, and returns them.
  std::vector<ChunkRef> Forget(const BundleId& id);
  void SetListed(const BundleId& id, bool has_receipt);
  void SetListDamaged(const BundleId& id, const std::string& why);
  std::vector<BundleId> FindDamaged() const;
  bool IsListed(const BundleId& id) const;
  std::string BundlesFolder() const { return options_.folder + "/bundles"; }
  std::string PathOf(const BundleId& id) const;

  [[nodiscard]] Status CopyFile(const FileEntry& file, const std::string& path,
                                Sync sync);
  [[nodiscard]] Status WriteFolder(const FileList& list,
                                   const std::string& folder, Sync sync);
  void CheckBundle(const BundleId& id, StoreReport& report);

  FileSystem& files_;
  const Options options_;
  Fd lock_;
  DiskBudget budget_;
  std::unique_ptr<ChunkStore> chunks_;

  std::mutex change_mutex_;   // one Commit or Remove at a time; over I/O
  mutable std::mutex mutex_;  // for all below, never held over I/O
  std::map<BundleId, Bundle> bundles_;
  std::map<std::string, std::string> damaged_;
  uint64_t version_ = 0;  // of the two above
  bool all_read_ = false;
  bool removals_allowed_ = false;
  int64_t last_scrub_s_ = 0;
  // DamagedBundles() of these versions of chunks and bundles.
  mutable std::pair<uint64_t, uint64_t> damaged_versions_{UINT64_MAX,
                                                          UINT64_MAX};
  mutable std::vector<BundleId> damaged_bundles_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_BUNDLE_STORE_H_
