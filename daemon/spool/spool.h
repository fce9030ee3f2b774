#ifndef CLEW_DAEMON_SPOOL_SPOOL_H_
#define CLEW_DAEMON_SPOOL_SPOOL_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::daemon {

// Where a bundle is, which is its whole state; docs/design/daemon.md.
enum class Stage : uint8_t {
  kIncoming,
  kChecking,
  kReady,
  kUploaded,
  kRefused,
  kStuck
};
inline constexpr Stage kStages[] = {Stage::kIncoming, Stage::kChecking,
                                    Stage::kReady,    Stage::kUploaded,
                                    Stage::kRefused,  Stage::kStuck};
std::string_view FolderOf(Stage stage);

// "<program or unit>~<nanoseconds since 1970>~<process>.clew".
struct BundleName {
  std::string subject;
  int64_t at_ns = 0;
  int32_t process = 0;
  bool operator==(const BundleName&) const = default;
};
// Bytes of `subject` that a unit's name cannot have become '_'.
std::string FormatName(const BundleName& name);
// Returns nullopt if `name` is not of that form, as "<name>.clew.partial" is
// not.
std::optional<BundleName> ParseName(std::string_view name);

struct SpoolLimits {
  uint64_t bytes = 0;       // the spool's own
  uint64_t free_bytes = 0;  // left on the disk
};

struct SpoolUse {
  uint64_t bundles = 0;
  uint64_t bytes = 0;  // on disk
  bool operator==(const SpoolUse&) const = default;
};

// What MakeRoom removed.
struct Evicted {
  std::string name;
  Stage stage;
};

// The folders of the spool. Every move is durable when it returns: a rename,
// then both folders synced. A removal first moves to the folder trash/, so that
// a bundle is in a stage whole or not at all; SweepTrash empties that.
//
// One process at a time has a spool. Errors are kSystem and name the path. Not
// thread-safe.
class Spool {
 public:
  static constexpr int64_t kJunkAgeS = 24 * 3600;
  // Entries that are looked at in one go, where others may make them: what is
  // beyond is seen when these are gone.
  static constexpr size_t kWalkMax = 20'000;
  // And that are removed.
  static constexpr size_t kSweepMax = 20'000;
  // Entries of incoming/ that one user may have.
  static constexpr size_t kGuestsMax = 1'000;

  // Makes the folders that do not exist; removes what dead writers left in
  // incoming/. `files` must outlive the spool. Fails with kInvalidArgument if
  // another process has this spool.
  [[nodiscard]] static Result<Spool> Open(FileSystem& files, std::string root,
                                          SpoolLimits limits);
  Spool(Spool&& other) noexcept = default;
  Spool& operator=(Spool&&) = delete;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void SetLimits(SpoolLimits limits) { limits_ = limits; }
  std::string Folder(Stage stage) const;
  std::string Path(Stage stage, std::string_view name) const;

  // Returns the names of the bundles in a stage, oldest first, without partial
  // ones and without names that ParseName does not know.
  std::vector<std::string> List(Stage stage) const;
  // Returns those that are being written: "<name>.partial" with a live writer.
  std::vector<std::string> Writing() const;

  // Moves a bundle and returns its name there. If a stage other than incoming/
  // has one of this name, the nanoseconds in it are counted up until there is
  // none.
  [[nodiscard]] Result<std::string> Move(const std::string& name, Stage from,
                                         Stage to);
  // Returns who owns the bundle, or nullopt if it is not there.
  std::optional<uid_t> OwnerOf(Stage stage, std::string_view name) const;
  // Returns who owned a bundle of checking/ when it was in incoming/, or
  // nullopt if it was ours. Move notes it before it moves the bundle, so that
  // the daemon can end at any time without losing it.
  std::optional<uid_t> OriginOf(const std::string& name) const;
  // From now on the bundle counts as ours.
  [[nodiscard]] Status ForgetOrigin(const std::string& name);
  // Moves a bundle to refused/ or stuck/, with the reason beside it. Returns
  // what Move does.
  [[nodiscard]] Result<std::string> SetAside(const std::string& name,
                                             Stage from, Stage to,
                                             std::string_view why);
  // Returns the reason that SetAside stored; empty if there is none.
  std::string WhyAside(const std::string& name, Stage stage) const;
  [[nodiscard]] Status Remove(const std::string& name, Stage stage);

  SpoolUse Use(Stage stage) const;
  uint64_t UsedBytes() const;
  uint64_t FreeBytes() const;  // of the disk, for us
  // Returns how many bytes may still be written.
  uint64_t Room() const;
  // Returns what lies in incoming/ that is not a bundle and is not becoming
  // one.
  SpoolUse Junk() const;
  // Removes bundles until there is room for `bytes`: first those sent, then
  // those refused, stuck and ready, each oldest first. Those stuck or ready
  // exist nowhere else, so none of them is removed for the sake of what is in
  // incoming/, where others write. `keep` is never removed. Returns what was
  // removed; Room() tells whether it was enough.
  [[nodiscard]] Result<std::vector<Evicted>> MakeRoom(uint64_t bytes,
                                                      std::string_view keep);
  // Returns whether incoming/ has more than kWalkMax entries.
  bool IsIncomingTooLarge() const;
  // Removes up to kSweepMax entries of trash/. Returns true if nothing is left.
  bool SweepTrash();
  // Removes unlocked partial folders.
  [[nodiscard]] Status RemoveDeadWriters();
  // Removes junk that has not changed for kJunkAgeS seconds before `now_ns`.
  // Returns how many entries it removed.
  [[nodiscard]] Result<uint64_t> RemoveOldJunk(int64_t now_ns);
  // Keeps every user but ours within `bytes` and kGuestsMax entries in
  // incoming/: removes what changed longest ago first, and what has a live
  // writer last. Removes at once what has more files or more nested folders
  // than a bundle. Returns the names of what it removed.
  [[nodiscard]] Result<std::vector<std::string>> EnforceQuota(uint64_t bytes);

 private:
  Spool(FileSystem& files, std::string root, SpoolLimits limits, Fd lock);
  Status MakeFolders();
  std::string Trash() const;
  Status ThrowAway(const std::string& path, const std::string& name);
  std::vector<std::string> JunkNames() const;
  struct Guest;
  std::map<uid_t, std::vector<Guest>> Guests() const;
  uint64_t OwnBytes() const;
  uint64_t RoomBeside(uint64_t used, uint64_t free) const;
  bool IsTaken(const std::string& name, Stage except) const;
  std::string FreeName(const std::string& name, Stage from) const;
  std::string OriginPath(const std::string& name) const;
  Status NoteOrigin(const std::string& name, const std::string& as);
  Result<std::string> MoveAs(const std::string& name, Stage from, Stage to,
                             const std::string& as);

  FileSystem* files_;
  std::string root_;
  SpoolLimits limits_;
  Fd lock_;
  uint64_t thrown_away_ = 0;
  // Of bundles that do not change any more; filled when asked.
  mutable std::map<std::string, uint64_t> bytes_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_SPOOL_H_
