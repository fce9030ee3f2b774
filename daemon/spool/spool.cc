#include "daemon/spool/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>
#include <utility>

#include "common/check.h"
#include "common/os/lock_file.h"
#include "common/text/parse_number.h"
#include "daemon/config/config.h"
#include "daemon/spool/bounded_walk.h"
#include "daemon/spool/takeover.h"

namespace clew::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".clew";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kTrash = "trash";
// With the rest of a name below the 255 bytes of a file system.
constexpr size_t kSubjectMax = 200;
constexpr time_t kNewLockS = 5;
// A child of a clewd that was killed may hold the lock a moment longer.
constexpr std::chrono::seconds kLockWait{2};

Result<Fd> Lock(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(lock, TryLockFile(path, kLockWait));
  if (!lock.is_open()) {
    return InvalidArgument("{:?} is held by another process; is clewd running?",
                           path);
  }
  return std::move(lock);
}

// A recorder holds the lock in its folder while it lives. A folder without one
// is about to get it, or about to be published: both soon. A new lock is left
// alone: to try it could make its owner believe that it is taken.
bool WriterIsDead(const std::string& folder) {
  const int at =
      open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  // A link or a pipe in its place is a stranger's.
  const int fd =
      at < 0 ? -1
             : openat(at, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (at >= 0) {
    close(at);
  }
  if (fd < 0) {
    return false;
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || info.st_mtime + kNewLockS > time(nullptr)) {
    close(fd);
    return false;
  }
  const bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return dead;
}

bool HasLock(const std::string& folder) {
  struct stat info = {};
  return lstat((folder + "/lock").c_str(), &info) == 0;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  WalkBudget budget(Spool::kWalkMax);
  return NamesIn(folder, budget);
}

template <class Number>
bool Take(std::string_view text, Number* value) {
  const auto number = ParseNumber<Number>(text);
  *value = number.value_or(0);
  return number && *number >= 0;
}

bool HasReasons(Stage stage) {
  return stage == Stage::kRefused || stage == Stage::kStuck;
}

std::string WhyPath(const std::string& bundle) { return bundle + ".why"; }

uint64_t AgeOf(const std::string& name) {
  const auto parsed = ParseName(name);
  return parsed ? static_cast<uint64_t>(parsed->at_ns) : 0;
}

}  // namespace

std::string_view FolderOf(Stage stage) {
  switch (stage) {
    case Stage::kIncoming:
      return "incoming";
    case Stage::kChecking:
      return "checking";
    case Stage::kReady:
      return "ready";
    case Stage::kUploaded:
      return "uploaded";
    case Stage::kRefused:
      return "refused";
    case Stage::kStuck:
      return "stuck";
  }
  return "";
}

std::string FormatName(const BundleName& name) {
  std::string subject = name.subject.substr(0, kSubjectMax);
  for (char& c : subject) {
    if (!IsUnitName(std::string(1, c)) && c != '.') {
      c = '_';
    }
  }
  if (!IsUnitName(subject)) {
    subject = "_" + subject.substr(0, kSubjectMax - 1);
  }
  return fmt::format("{}~{}~{}{}", subject, name.at_ns, name.process, kSuffix);
}

std::optional<BundleName> ParseName(std::string_view name) {
  if (name.ends_with(kPartial)) {
    name.remove_suffix(kPartial.size());
  }
  if (!name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  name.remove_suffix(kSuffix.size());
  const size_t second = name.rfind('~');
  const size_t first = second == std::string_view::npos || second == 0
                           ? std::string_view::npos
                           : name.rfind('~', second - 1);
  BundleName parsed;
  if (first == std::string_view::npos || first > kSubjectMax ||
      !IsUnitName(name.substr(0, first)) ||
      !Take(name.substr(first + 1, second - first - 1), &parsed.at_ns) ||
      !Take(name.substr(second + 1), &parsed.process)) {
    return std::nullopt;
  }
  parsed.subject = name.substr(0, first);
  return parsed;
}

namespace {

uint64_t DiskBytes(const std::string& path) {
  WalkBudget budget(Spool::kWalkMax);
  return DiskBytes(path, budget);
}

}  // namespace

Result<Spool> Spool::Open(FileSystem& files, std::string root,
                          SpoolLimits limits) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error) {
    return SystemError(error.value(), fmt::format("cannot make {:?}", root));
  }
  CLEW_ASSIGN_OR_RETURN(lock, Lock(root + "/lock"));
  Spool spool(files, std::move(root), limits, std::move(lock));
  CLEW_RETURN_IF_ERROR(spool.MakeFolders());
  (void)spool.SweepTrash();  // the rest later
  CLEW_RETURN_IF_ERROR(spool.RemoveDeadWriters());
  return spool;
}

Spool::Spool(FileSystem& files, std::string root, SpoolLimits limits, Fd lock)
    : files_(&files),
      root_(std::move(root)),
      limits_(limits),
      lock_(std::move(lock)) {}

Status Spool::MakeFolders() {
  std::vector<std::string> folders = {root_ + "/" + std::string(kTrash)};
  for (const Stage stage : kStages) {
    folders.push_back(Folder(stage));
  }
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder)) {
      CLEW_RETURN_IF_ERROR(files_->CreateDirectory(folder));
      // incoming/ gets group and mode of the packages; all else is ours alone.
      (void)chmod(folder.c_str(), 0700);  // fails only if it is gone again
    }
    // What is visible is not yet durable: who made it may have been killed.
    CLEW_RETURN_IF_ERROR(files_->SyncDirectory(folder));
  }
  return files_->SyncDirectory(root_);
}

std::string Spool::Trash() const { return fmt::format("{}/{}", root_, kTrash); }

bool Spool::SweepTrash() {
  WalkBudget budget(kSweepMax);
  return EmptySome(Trash(), budget);
}

Status Spool::RemoveDeadWriters() {
  for (const std::string& name : NamesIn(Folder(Stage::kIncoming))) {
    const std::string path = Path(Stage::kIncoming, name);
    if (name.ends_with(kPartial) && WriterIsDead(path)) {
      CLEW_RETURN_IF_ERROR(ThrowAway(path, name));
    }
  }
  return {};
}

std::string Spool::Folder(Stage stage) const {
  return fmt::format("{}/{}", root_, FolderOf(stage));
}

std::string Spool::Path(Stage stage, std::string_view name) const {
  return fmt::format("{}/{}/{}", root_, FolderOf(stage), name);
}

std::vector<std::string> Spool::List(Stage stage) const {
  std::vector<std::string> names = NamesIn(Folder(stage));
  std::erase_if(names, [](const std::string& name) {
    return name.ends_with(kPartial) || !ParseName(name);
  });
  std::ranges::sort(names, {}, [](const std::string& name) {
    return std::pair(AgeOf(name), name);
  });
  return names;
}

std::vector<std::string> Spool::Writing() const {
  std::vector<std::string> names = NamesIn(Folder(Stage::kIncoming));
  std::erase_if(names, [&](const std::string& name) {
    return !name.ends_with(kPartial) || !ParseName(name) ||
           WriterIsDead(Path(Stage::kIncoming, name));
  });
  return names;
}

// Looks in the stages that are ours, except `except`; names that strangers gave
// in incoming/ are not taken.
bool Spool::IsTaken(const std::string& name, Stage except) const {
  return std::ranges::any_of(kStages, [&](Stage stage) {
    struct stat info = {};
    return stage != Stage::kIncoming && stage != except &&
           lstat(Path(stage, name).c_str(), &info) == 0;
  });
}

std::string Spool::FreeName(const std::string& name, Stage from) const {
  if (!IsTaken(name, from)) {
    return name;
  }
  BundleName next = ParseName(name).value_or(BundleName());
  std::string free;
  do {
    next.at_ns = next.at_ns == INT64_MAX ? 0 : next.at_ns + 1;
    free = FormatName(next);
  } while (IsTaken(free, Stage::kIncoming));
  return free;
}

Result<std::string> Spool::MoveAs(const std::string& name, Stage from, Stage to,
                                  const std::string& as) {
  bytes_.erase(name);
  CLEW_RETURN_IF_ERROR(files_->Rename(Path(from, name), Path(to, as)));
  CLEW_RETURN_IF_ERROR(files_->SyncDirectory(Folder(to)));
  CLEW_RETURN_IF_ERROR(files_->SyncDirectory(Folder(from)));
  if (HasReasons(from)) {
    CLEW_RETURN_IF_ERROR(files_->RemoveAll(WhyPath(Path(from, name))));
  } else if (from == Stage::kChecking) {
    CLEW_RETURN_IF_ERROR(ForgetOrigin(name));
  }
  return as;
}

Result<std::string> Spool::Move(const std::string& name, Stage from, Stage to) {
  const std::string as = FreeName(name, from);
  if (from == Stage::kIncoming) {
    CLEW_RETURN_IF_ERROR(NoteOrigin(name, as));
  }
  return MoveAs(name, from, to, as);
}

std::optional<uid_t> Spool::OwnerOf(Stage stage, std::string_view name) const {
  struct stat info = {};
  if (lstat(Path(stage, name).c_str(), &info) != 0) {
    return std::nullopt;
  }
  return info.st_uid;
}

std::string Spool::OriginPath(const std::string& name) const {
  return Path(Stage::kChecking, name) + ".from";
}

Status Spool::NoteOrigin(const std::string& name, const std::string& as) {
  const uid_t owner = OwnerOf(Stage::kIncoming, name).value_or(geteuid());
  if (owner == geteuid()) {
    return ForgetOrigin(as);
  }
  const std::string text = fmt::format("{}", owner);
  return WriteWholeFile(*files_, OriginPath(as),
                        std::as_bytes(std::span(text)));
}

std::optional<uid_t> Spool::OriginOf(const std::string& name) const {
  if (!Exists(OriginPath(name))) {
    return std::nullopt;
  }
  // A note that cannot be read counts as that of a user who is not trusted.
  return ParseNumber<uid_t>(ReadWholeText(OriginPath(name)).value_or(""))
      .value_or(UINT32_MAX);
}

Status Spool::ForgetOrigin(const std::string& name) {
  return Exists(OriginPath(name)) ? files_->RemoveAll(OriginPath(name))
                                  : Status();
}

Result<std::string> Spool::SetAside(const std::string& name, Stage from,
                                    Stage to, std::string_view why) {
  CLEW_CHECK(HasReasons(to), "nothing is set aside in {}/", FolderOf(to));
  const std::string as = FreeName(name, from);
  const std::string line = std::string(why) + "\n";
  CLEW_RETURN_IF_ERROR(WriteWholeFile(*files_, WhyPath(Path(to, as)),
                                      std::as_bytes(std::span(line))));
  return MoveAs(name, from, to, as);
}

std::string Spool::WhyAside(const std::string& name, Stage stage) const {
  const auto text = ReadWholeText(WhyPath(Path(stage, name)));
  return text && !text->empty() ? text->substr(0, text->size() - 1) : "";
}

// Of strangers, so of any size and depth: what is left of it after SweepTrash
// is there the next time. Not durable; it would be thrown away again.
Status Spool::ThrowAway(const std::string& path, const std::string& name) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return files_->RemoveAll(path);
  }
  std::string trash;
  do {
    trash = fmt::format("{}/{}.{}", Trash(), name.substr(0, kSubjectMax),
                        ++thrown_away_);
  } while (Exists(trash));
  return files_->Rename(path, trash);
}

Status Spool::Remove(const std::string& name, Stage stage) {
  bytes_.erase(name);
  if (stage == Stage::kIncoming || stage == Stage::kRefused) {
    CLEW_RETURN_IF_ERROR(ThrowAway(Path(stage, name), name));
    (void)SweepTrash();
    return HasReasons(stage) ? files_->RemoveAll(WhyPath(Path(stage, name)))
                             : Status();
  }
  const std::string trash = fmt::format("{}/{}", Trash(), name);
  CLEW_RETURN_IF_ERROR(files_->RemoveAll(trash));
  CLEW_RETURN_IF_ERROR(files_->Rename(Path(stage, name), trash));
  CLEW_RETURN_IF_ERROR(files_->SyncDirectory(Folder(stage)));
  if (HasReasons(stage)) {
    CLEW_RETURN_IF_ERROR(files_->RemoveAll(WhyPath(Path(stage, name))));
  } else if (stage == Stage::kChecking) {
    CLEW_RETURN_IF_ERROR(ForgetOrigin(name));
  }
  return files_->RemoveAll(trash);
}

SpoolUse Spool::Use(Stage stage) const {
  SpoolUse use;
  for (const std::string& name : List(stage)) {
    ++use.bundles;
    if (stage == Stage::kIncoming || stage == Stage::kChecking) {
      use.bytes += DiskBytes(Path(stage, name));
      continue;
    }
    const auto [known, added] = bytes_.try_emplace(name, 0);
    if (added) {
      known->second = DiskBytes(Path(stage, name));
    }
    use.bytes += known->second;
  }
  return use;
}

// Of the stages that are ours.
uint64_t Spool::OwnBytes() const {
  uint64_t bytes = 0;
  for (const Stage stage : kStages) {
    bytes += stage == Stage::kIncoming ? 0 : Use(stage).bytes;
  }
  return bytes;
}

uint64_t Spool::UsedBytes() const {
  // All that is in incoming/ costs disk, whatever its name.
  return OwnBytes() + DiskBytes(Folder(Stage::kIncoming));
}

uint64_t Spool::FreeBytes() const {
  struct statvfs info = {};
  if (statvfs(root_.c_str(), &info) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

uint64_t Spool::RoomBeside(uint64_t used, uint64_t free) const {
  const uint64_t budget = limits_.bytes - std::min(limits_.bytes, used);
  return std::min(budget, free - std::min(free, limits_.free_bytes));
}

uint64_t Spool::Room() const { return RoomBeside(UsedBytes(), FreeBytes()); }

Result<std::vector<Evicted>> Spool::MakeRoom(uint64_t bytes,
                                             std::string_view keep) {
  std::vector<Evicted> gone;
  const uint64_t incoming = DiskBytes(Folder(Stage::kIncoming));
  for (const Stage stage :
       {Stage::kUploaded, Stage::kRefused, Stage::kStuck, Stage::kReady}) {
    const bool unsent = stage == Stage::kStuck || stage == Stage::kReady;
    for (const std::string& name : List(stage)) {
      const uint64_t room =
          unsent ? RoomBeside(OwnBytes(), FreeBytes() + incoming)
                 : RoomBeside(OwnBytes() + incoming, FreeBytes());
      if (room >= bytes) {
        break;
      }
      if (name != keep) {
        CLEW_RETURN_IF_ERROR(Remove(name, stage));
        gone.push_back({name, stage});
      }
    }
  }
  return gone;
}

// A partial folder without a lock that its writer could hold is one only while
// it is new.
std::vector<std::string> Spool::JunkNames() const {
  std::vector<std::string> names = NamesIn(Folder(Stage::kIncoming));
  std::erase_if(names, [&](const std::string& name) {
    return ParseName(name) &&
           (!name.ends_with(kPartial) || HasLock(Path(Stage::kIncoming, name)));
  });
  return names;
}

SpoolUse Spool::Junk() const {
  SpoolUse use;
  for (const std::string& name : JunkNames()) {
    ++use.bundles;
    use.bytes += DiskBytes(Path(Stage::kIncoming, name));
  }
  return use;
}

Result<uint64_t> Spool::RemoveOldJunk(int64_t now_ns) {
  uint64_t count = 0;
  for (const std::string& name : JunkNames()) {
    const std::string path = Path(Stage::kIncoming, name);
    struct stat info = {};
    // The time of its last change, which its owner cannot set (inode(7)).
    if (lstat(path.c_str(), &info) == 0 &&
        info.st_ctim.tv_sec + kJunkAgeS <= now_ns / 1'000'000'000) {
      CLEW_RETURN_IF_ERROR(Remove(name, Stage::kIncoming));
      ++count;
    }
  }
  return count;
}

// What somebody else has in incoming/.
struct Spool::Guest {
  std::string name;
  uint64_t bytes = 0;
  bool growing = false;
  bool is_bundle = true;  // as far as number and depth of its files go
  int64_t changed_s = 0;  // its owner cannot set it (inode(7))
};

std::map<uid_t, std::vector<Spool::Guest>> Spool::Guests() const {
  std::map<uid_t, std::vector<Guest>> guests;
  for (const std::string& name : NamesIn(Folder(Stage::kIncoming))) {
    const std::string path = Path(Stage::kIncoming, name);
    struct stat info = {};
    if (lstat(path.c_str(), &info) == 0 && info.st_uid != geteuid()) {
      WalkBudget budget(kTakenFilesMax);
      const uint64_t bytes = DiskBytes(path, budget);
      guests[info.st_uid].push_back(
          {.name = name,
           .bytes = bytes,
           .growing = name.ends_with(kPartial) && HasLock(path),
           .is_bundle = !budget.is_cut(),
           .changed_s = info.st_ctim.tv_sec});
    }
  }
  return guests;
}

Result<std::vector<std::string>> Spool::EnforceQuota(uint64_t bytes) {
  std::vector<std::string> gone;
  for (auto& [user, guests] : Guests()) {
    uint64_t used = 0;
    for (const Guest& guest : guests) {
      used += guest.bytes;
    }
    std::ranges::sort(guests, {}, [](const Guest& guest) {
      return std::tuple(guest.is_bundle, guest.growing, guest.changed_s,
                        guest.name);
    });
    size_t count = guests.size();
    for (const Guest& guest : guests) {
      if (guest.is_bundle && used <= bytes && count <= kGuestsMax) {
        break;
      }
      CLEW_RETURN_IF_ERROR(
          ThrowAway(Path(Stage::kIncoming, guest.name), guest.name));
      used -= guest.bytes;
      --count;
      gone.push_back(guest.name);
    }
  }
  (void)SweepTrash();
  return gone;
}

bool Spool::IsIncomingTooLarge() const {
  WalkBudget budget(kWalkMax);
  (void)NamesIn(Folder(Stage::kIncoming), budget);
  return budget.is_cut();
}

}  // namespace clew::daemon
