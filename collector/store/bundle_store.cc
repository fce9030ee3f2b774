#include "collector/store/bundle_store.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/check.h"
#include "common/os/file.h"
#include "common/os/lock_file.h"
#include "common/text/path_names.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListSuffix = ".pb";

Status MakeDurableFolder(FileSystem& files, const std::string& path) {
  if (!Exists(path)) {
    CLEW_RETURN_IF_ERROR(files.CreateDirectory(path));
  }
  return files.SyncDirectory(ParentFolder(path));
}

Result<Fd> Lock(const std::string& folder) {
  CLEW_ASSIGN_OR_RETURN(lock, TryLockFile(folder + "/lock"));
  if (!lock.is_open()) {
    return std::unexpected(
        Error{ErrorCode::kSystem,
              fmt::format("{:?} is open in another collector; stop that one or "
                          "choose another folder",
                          folder),
              EWOULDBLOCK});
  }
  return std::move(lock);
}

std::string ListName(const BundleId& id) {
  return id.hex() + std::string(kListSuffix);
}

std::optional<BundleId> IdOfListFile(std::string_view name) {
  if (!name.ends_with(kListSuffix)) {
    return std::nullopt;
  }
  return BundleId::Parse(name.substr(0, name.size() - kListSuffix.size()));
}

}  // namespace

BundleStore::BundleStore(FileSystem& files, const Options& options, Fd lock)
    : files_(files),
      options_(options),
      lock_(std::move(lock)),
      budget_(options.budget_bytes) {}

Result<std::unique_ptr<BundleStore>> BundleStore::Open(FileSystem& files,
                                                       const Options& options) {
  CLEW_RETURN_IF_ERROR(MakeDurableFolder(files, options.folder));
  CLEW_ASSIGN_OR_RETURN(lock, Lock(options.folder));
  std::unique_ptr<BundleStore> store(
      new BundleStore(files, options, std::move(lock)));
  CLEW_RETURN_IF_ERROR(store->Recover());
  return store;
}

Status BundleStore::Recover() {
  CLEW_RETURN_IF_ERROR(MakeDurableFolder(files_, BundlesFolder()));
  CLEW_ASSIGN_OR_RETURN(chunks,
                        ChunkStore::Open(files_, budget_,
                                         {.folder = options_.folder,
                                          .keep_s = options_.keep_s,
                                          .now_s = options_.now_s,
                                          .read_later = options_.read_later}));
  chunks_ = std::move(chunks);
  // A collector that was killed may have left names that are not durable.
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(BundlesFolder()));
  if (options_.read_later) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(ReadAll([] { return true; }));
  AllowRemovals();
  return {};
}

// Chunks first: then no list asks for the file of each.
Status BundleStore::ReadAll(const std::function<bool()>& go_on) {
  CLEW_RETURN_IF_ERROR(chunks_->ReadAll(go_on));
  std::error_code error;
  fs::directory_iterator at(BundlesFolder(), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (!go_on()) {
      return SystemError(ECANCELED, "the store is not read to its end");
    }
    RecoverList(at->path().filename().string());
  }
  if (error) {
    return SystemError(error.value(),
                       fmt::format("cannot list {:?}", BundlesFolder()));
  }
  chunks_->SetHoldersKnown();
  const std::lock_guard lock(mutex_);
  all_read_ = true;
  return {};
}

bool BundleStore::IsAllRead() const {
  const std::lock_guard lock(mutex_);
  return all_read_;
}

void BundleStore::AllowRemovals() {
  CLEW_CHECK(IsAllRead(), "removals in a store that is not read");
  const std::lock_guard lock(mutex_);
  removals_allowed_ = true;
}

bool BundleStore::IsInIndex(const BundleId& id) const {
  const std::lock_guard lock(mutex_);
  return all_read_ || bundles_.contains(id);
}

void BundleStore::RecoverList(const std::string& name) {
  const auto id = IdOfListFile(name);
  if (!id) {
    const std::lock_guard lock(mutex_);
    damaged_[name] =
        fmt::format("{:?} is no file of a store", BundlesFolder() + "/" + name);
    return;
  }
  if (!IsInIndex(*id)) {
    auto stored = ReadStoredList(PathOf(*id), *id);  // others go on meanwhile
    const std::lock_guard change(change_mutex_);
    LearnLocked(*id, std::move(stored));
  }
}

void BundleStore::Learn(const BundleId& id) {
  if (!IsInIndex(id)) {
    const std::lock_guard change(change_mutex_);
    LearnLocked(id, ReadStoredList(PathOf(id), id));
  }
}

// A commit that failed may have taken the list away since it was read.
void BundleStore::LearnLocked(const BundleId& id, Result<StoredList> stored) {
  if (IsInIndex(id) || !Exists(PathOf(id))) {
    return;
  }
  if (!stored) {
    const std::lock_guard lock(mutex_);
    damaged_[ListName(id)] = stored.error().message;
    ++version_;
    return;
  }
  std::vector<ChunkRef> chunks = stored->list.Chunks();
  chunks_->HoldStored(chunks);
  Add(stored->list, std::move(chunks), stored->size_bytes);
  budget_.TakeAnyway(stored->size_bytes);
  SetListed(id, stored->receipt.has_value());
}

// Holds the chunks of a list that is not listed yet.
Status BundleStore::TakeIn(const FileList& list, uint64_t list_bytes) {
  std::vector<ChunkRef> chunks = list.Chunks();
  CLEW_RETURN_IF_ERROR(chunks_->Hold(chunks));
  Add(list, std::move(chunks), list_bytes);
  return {};
}

void BundleStore::Add(const FileList& list, std::vector<ChunkRef> chunks,
                      uint64_t list_bytes) {
  const std::lock_guard lock(mutex_);
  ++version_;
  bundles_.emplace(list.id(), Bundle{.size_bytes = list.size_bytes(),
                                     .file_count = list.files().size(),
                                     .chunks = std::move(chunks),
                                     .list_bytes = list_bytes});
}

std::string BundleStore::PathOf(const BundleId& id) const {
  return BundlesFolder() + "/" + ListName(id);
}

void BundleStore::SetListed(const BundleId& id, bool has_receipt) {
  const std::lock_guard lock(mutex_);
  Bundle& bundle = bundles_.at(id);
  bundle.listed = true;
  bundle.has_receipt = has_receipt;
  damaged_.erase(ListName(id));
  ++version_;
}

bool BundleStore::IsListed(const BundleId& id) const {
  const std::lock_guard lock(mutex_);
  const auto at = bundles_.find(id);
  return at != bundles_.end() && at->second.listed;
}

Status BundleStore::WriteList(const BundleId& id,
                              std::span<const std::byte> bytes) {
  const std::string incoming = chunks_->NewIncomingPath();
  Status written = WriteWholeFile(files_, incoming, bytes);
  if (written) {
    written = files_.Rename(incoming, PathOf(id));
  }
  if (!written) {
    (void)files_.RemoveAll(incoming);  // the first error is the one to report
    return written;
  }
  return files_.SyncDirectory(BundlesFolder());
}

Status BundleStore::Commit(const FileList& list, const Receipt& receipt) {
  const std::lock_guard change(change_mutex_);
  const BundleId& id = list.id();
  if (!IsInIndex(id)) {
    LearnLocked(id, ReadStoredList(PathOf(id), id));
  }
  if (IsListed(id)) {
    return {};
  }
  const std::vector<std::byte> bytes = EncodeStored(list, receipt);
  const bool known = [&] {  // from a commit or removal that failed
    const std::lock_guard lock(mutex_);
    return bundles_.contains(id);
  }();
  if (!known) {
    CLEW_RETURN_IF_ERROR(budget_.Take(bytes.size(), "bundle " + id.hex()));
    if (Status taken = TakeIn(list, bytes.size()); !taken) {
      budget_.Return(bytes.size());
      return taken;
    }
  }
  if (Status written = WriteList(id, bytes); !written) {
    GiveUp(id);
    return written;
  }
  SetListed(id, !receipt.host.empty());
  return {};
}

// Lets go of a bundle that could not be committed, once it is certain that no
// list of it can come back; until then its chunks stay held.
void BundleStore::GiveUp(const BundleId& id) {
  if (files_.RemoveAll(PathOf(id)) && files_.SyncDirectory(BundlesFolder())) {
    Forget(id);
  }
}

std::vector<ChunkRef> BundleStore::Forget(const BundleId& id) {
  Bundle gone;
  {
    const std::lock_guard lock(mutex_);
    damaged_.erase(ListName(id));
    ++version_;
    auto node = bundles_.extract(id);
    if (node.empty()) {
      return {};
    }
    gone = std::move(node.mapped());
  }
  budget_.Return(gone.list_bytes);
  chunks_->Release(gone.chunks);
  return std::move(gone.chunks);
}

std::vector<StoredBundle> BundleStore::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoredBundle> listed;
  for (const auto& [id, bundle] : bundles_) {
    if (bundle.listed) {
      listed.push_back({.id = id,
                        .size_bytes = bundle.size_bytes,
                        .file_count = bundle.file_count});
    }
  }
  return listed;
}

Result<std::vector<BundleId>> BundleStore::WithPrefix(
    std::string_view digits) const {
  std::vector<BundleId> found;
  if (IsAllRead()) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, bundle] : bundles_) {
      if (bundle.listed && id.hex().starts_with(digits)) {
        found.push_back(id);
      }
    }
    return found;
  }
  std::error_code error;
  fs::directory_iterator at(BundlesFolder(), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    const auto id = IdOfListFile(name);
    if (id && name.starts_with(digits)) {
      found.push_back(*id);
    }
  }
  if (error) {
    return SystemError(error.value(),
                       fmt::format("cannot list {:?}", BundlesFolder()));
  }
  std::ranges::sort(found);
  return found;
}

Result<StoredList> BundleStore::ReadStored(const BundleId& id) const {
  if (!IsListed(id) && (IsInIndex(id) || !Exists(PathOf(id)))) {
    return InvalidArgument("no bundle {}", id.hex());
  }
  return ReadStoredList(PathOf(id), id);
}

Result<FileList> BundleStore::ReadList(const BundleId& id) const {
  CLEW_ASSIGN_OR_RETURN(stored, ReadStored(id));
  return std::move(stored.list);
}

Result<std::optional<Receipt>> BundleStore::ReadReceipt(
    const BundleId& id) const {
  CLEW_ASSIGN_OR_RETURN(stored, ReadStored(id));
  return std::move(stored.receipt);
}

// The budget keeps what the list had without it until the next start: some
// hundred bytes.
Status BundleStore::AddReceipt(const BundleId& id, const Receipt& receipt) {
  const std::lock_guard change(change_mutex_);
  CLEW_ASSIGN_OR_RETURN(stored, ReadStored(id));
  if (!stored.receipt) {
    CLEW_RETURN_IF_ERROR(WriteList(id, EncodeStored(stored.list, receipt)));
  }
  SetListed(id, true);
  return {};
}

std::vector<BundleId> BundleStore::WithoutReceipt() const {
  const std::lock_guard lock(mutex_);
  std::vector<BundleId> found;
  for (const auto& [id, bundle] : bundles_) {
    if (bundle.listed && !bundle.has_receipt) {
      found.push_back(id);
    }
  }
  return found;
}

bool BundleStore::IsWhole(const BundleId& id) {
  Learn(id);
  const auto list = ReadList(id);
  if (!list && IsListed(id) && IsDamage(list.error())) {
    SetListDamaged(id, list.error().message);
  }
  return list && !IsDamaged(id);
}

// Its chunks stay held, until the list is written again or the bundle removed.
void BundleStore::SetListDamaged(const BundleId& id, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto at = bundles_.find(id);
  if (at != bundles_.end() && at->second.listed) {
    at->second.listed = false;
    damaged_[ListName(id)] = why;
    ++version_;
  }
}

bool BundleStore::IsDamaged(const BundleId& id) const {
  const std::lock_guard lock(mutex_);
  const auto at = bundles_.find(id);
  return damaged_.contains(ListName(id)) ||
         (at != bundles_.end() && chunks_->HasDamage(at->second.chunks));
}

std::vector<BundleId> BundleStore::FindDamaged() const {
  std::vector<BundleId> found;
  for (const auto& [name, why] : damaged_) {
    if (const auto id = IdOfListFile(name)) {
      found.push_back(*id);
    }
  }
  if (chunks_->Damaged().empty()) {
    return found;
  }
  for (const auto& [id, bundle] : bundles_) {
    if (bundle.listed && chunks_->HasDamage(bundle.chunks)) {
      found.push_back(id);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<BundleId> BundleStore::DamagedBundles() const {
  const std::lock_guard lock(mutex_);
  const std::pair versions(chunks_->damage_version(), version_);
  if (versions != damaged_versions_) {
    damaged_bundles_ = FindDamaged();
    damaged_versions_ = versions;
  }
  return damaged_bundles_;
}

StoreHealth BundleStore::Health() const {
  StoreHealth health{.damaged_chunks = chunks_->Damaged().size(),
                     .damaged_bundles = DamagedBundles().size()};
  const std::lock_guard lock(mutex_);
  health.last_scrub_s = last_scrub_s_;
  return health;
}

void BundleStore::SetScrubbed(int64_t wall_s) {
  const std::lock_guard lock(mutex_);
  last_scrub_s_ = wall_s;
}

Status BundleStore::CheckRemovable() const {
  const std::lock_guard lock(mutex_);
  if (removals_allowed_) {
    return {};
  }
  return std::unexpected(
      Error{ErrorCode::kSystem,
            "the collector still reads its store after its start, and removes "
            "nothing meanwhile; try again later",
            EAGAIN});
}

Status BundleStore::Remove(const BundleId& id) {
  CLEW_RETURN_IF_ERROR(CheckRemovable());
  const std::lock_guard change(change_mutex_);
  const bool known = [&] {
    const std::lock_guard lock(mutex_);
    const auto at = bundles_.find(id);
    if (at != bundles_.end()) {
      at->second.listed = false;
      return true;
    }
    return damaged_.contains(ListName(id));
  }();
  if (!known) {
    return InvalidArgument("no bundle {}", id.hex());
  }
  // Chunks go only after their list can not come back.
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(PathOf(id)));
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(BundlesFolder()));
  // What cannot be removed is an orphan, for Expire or the next Open.
  (void)chunks_->Drop(Forget(id));
  return {};
}

Result<size_t> BundleStore::Expire() {
  if (!IsAllRead() || !Damaged().empty()) {
    return 0;
  }
  return chunks_->Expire();
}

std::map<std::string, std::string> BundleStore::Damaged() const {
  const std::lock_guard lock(mutex_);
  return damaged_;
}

Status BundleStore::CopyFile(const FileEntry& file, const std::string& path,
                             Sync sync) {
  CLEW_ASSIGN_OR_RETURN(to, files_.Create(path));
  for (size_t i = 0; i < file.chunks.size(); ++i) {
    CLEW_ASSIGN_OR_RETURN(bytes, chunks_->Read(file.chunk(i)));
    CLEW_RETURN_IF_ERROR(to->Append(bytes));
  }
  return sync == Sync::kEverything ? to->Sync() : Status();
}

Status BundleStore::WriteFolder(const FileList& list, const std::string& folder,
                                Sync sync) {
  std::set<std::string> folders = {folder};
  CLEW_RETURN_IF_ERROR(files_.CreateDirectory(folder));
  for (const FileEntry& file : list.files()) {
    for (size_t slash = file.path.find('/'); slash != file.path.npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string below = folder + "/" + file.path.substr(0, slash);
      if (folders.insert(below).second) {
        CLEW_RETURN_IF_ERROR(files_.CreateDirectory(below));
      }
    }
    CLEW_RETURN_IF_ERROR(CopyFile(file, folder + "/" + file.path, sync));
  }
  if (sync == Sync::kNothing) {
    return {};
  }
  for (const std::string& each : folders) {
    CLEW_RETURN_IF_ERROR(files_.SyncDirectory(each));
  }
  return {};
}

Status BundleStore::Materialise(const BundleId& id, const std::string& out,
                                Sync sync) {
  if (Exists(out)) {
    return InvalidArgument("{:?} exists; remove it or choose another name",
                           out);
  }
  Learn(id);
  CLEW_ASSIGN_OR_RETURN(list, ReadList(id));
  const std::vector<ChunkRef> chunks = list.Chunks();
  CLEW_RETURN_IF_ERROR(chunks_->Hold(chunks));
  const std::string partial = out + ".partial";
  Status written = files_.RemoveAll(partial);
  if (written) {
    written = WriteFolder(list, partial, sync);
  }
  chunks_->Release(chunks);
  if (written) {
    written = files_.Rename(partial, out);
  }
  if (!written) {
    (void)files_.RemoveAll(partial);  // the first error is the one to report
    return written;
  }
  return sync == Sync::kEverything ? files_.SyncDirectory(ParentFolder(out))
                                   : Status();
}

void BundleStore::CheckBundle(const BundleId& id, StoreReport& report) {
  const auto fault = [&](const Error& error) {
    if (IsListed(id)) {  // and not removed meanwhile
      report.faults.push_back("bundle " + id.hex() + ": " + error.message);
    }
  };
  const auto list = ReadList(id);
  if (!list) {
    return fault(list.error());
  }
  for (const ChunkRef& chunk : list->Chunks()) {
    if (const auto bytes = chunks_->Read(chunk); !bytes) {
      fault(bytes.error());
    }
    report.bytes_read += chunk.size_bytes;
  }
  ++report.bundles;
}

StoreReport BundleStore::Check() {
  StoreReport report;
  for (const StoredBundle& bundle : List()) {
    CheckBundle(bundle.id, report);
  }
  for (const auto& [name, why] : Damaged()) {
    report.faults.push_back(why);
  }
  for (const std::string& path : chunks_->strangers()) {
    report.faults.push_back(fmt::format("{:?} is no chunk", path));
  }
  report.orphans = chunks_->Unheld();
  return report;
}

}  // namespace clew::collector
