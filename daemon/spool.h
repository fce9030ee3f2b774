#ifndef CLEW_DAEMON_SPOOL_H_
#define CLEW_DAEMON_SPOOL_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/file.h"
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
// Bytes of `subject` that no unit's name has become '_'.
std::string FormatName(const BundleName& name);
// nullopt: not of that form. Also of a ".clew.partial".
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

  // Makes the folders that are not there; removes what dead writers left in
  // incoming/. kInvalidArgument: another process has it. `files` must outlive
  // the spool.
  [[nodiscard]] static Result<Spool> Open(FileSystem& files, std::string root,
                                          SpoolLimits limits);
  Spool(Spool&& other) noexcept = default;
  Spool& operator=(Spool&&) = delete;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void SetLimits(SpoolLimits limits) { limits_ = limits; }
  std::string Folder(Stage stage) const;
  std::string Path(Stage stage, std::string_view name) const;

  // Names of the bundles in a stage, oldest first; no partial ones. Names that
  // ParseName does not know are not listed.
  std::vector<std::string> List(Stage stage) const;
  // Those that are being written, "<name>.partial" with a live writer.
  std::vector<std::string> Writing() const;

  // Returns its name there: where a stage other than incoming/ has one of this
  // name, the nanoseconds in it are counted up until there is none.
  [[nodiscard]] Result<std::string> Move(const std::string& name, Stage from,
                                         Stage to);
  // Who owns what is there; nullopt: it is not.
  std::optional<uid_t> OwnerOf(Stage stage, std::string_view name) const;
  // Whose a bundle of checking/ was in incoming/, if not ours: Move notes it
  // before the bundle is there, so that no end of the daemon loses it.
  std::optional<uid_t> OriginOf(const std::string& name) const;
  // It is ours from now on.
  [[nodiscard]] Status ForgetOrigin(const std::string& name);
  // To refused/ or stuck/, with the reason beside it. Returns as Move does.
  [[nodiscard]] Result<std::string> SetAside(const std::string& name,
                                             Stage from, Stage to,
                                             std::string_view why);
  // The reason; empty where there is none.
  std::string WhyAside(const std::string& name, Stage stage) const;
  [[nodiscard]] Status Remove(const std::string& name, Stage stage);

  SpoolUse Use(Stage stage) const;
  uint64_t UsedBytes() const;
  uint64_t FreeBytes() const;  // of the disk, for us
  // How many bytes may still be written, now.
  uint64_t Room() const;
  // What is in incoming/ and no bundle, nor about to be one.
  SpoolUse Junk() const;
  // Removes bundles until there is room for `bytes`, oldest first: those sent,
  // those refused, those stuck, those ready. Of the latter two, which nobody
  // else has, none for what is in incoming/: others write there. `keep` is
  // never removed. Returns those gone; Room() tells whether it was enough.
  [[nodiscard]] Result<std::vector<Evicted>> MakeRoom(uint64_t bytes,
                                                      std::string_view keep);
  // More than kWalkMax entries.
  bool IsIncomingTooLarge() const;
  // Goes on with what is being thrown away. True: nothing is left.
  bool SweepTrash();
  // Removes unlocked partial folders.
  [[nodiscard]] Status RemoveDeadWriters();
  // Removes junk that did not change for kJunkAgeS before `now_ns`. Returns how
  // many.
  [[nodiscard]] Result<uint64_t> RemoveOldJunk(int64_t now_ns);
  // Removes of each user but ours who has more than `bytes` or kGuestsMax
  // entries in incoming/ what is oldest by the time of its last change, and
  // what has a live writer last, until it is no more; and at once what has more
  // files, or folders in folders, than a bundle. Returns the names of what is
  // gone.
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

#endif  // CLEW_DAEMON_SPOOL_H_
