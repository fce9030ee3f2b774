#ifndef CLEW_COLLECTOR_STORE_SCHEDULE_STORE_H_
#define CLEW_COLLECTOR_STORE_SCHEDULE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collector/store/chunk_store.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::collector {

// The schedules that `clew solve` found at the collector, one a bundle:
//
//     <folder>/<bundle id>.pb            whole, synced before it got the name
//     <folder>/<bundle id>.pb.partial    being written, or left by a crash
//
// A bundle's own files are what was recorded, and their digests are its name;
// what was found out later stands beside them. Whoever gets a bundle gets this
// as its schedule.pb, in place of one that it was sent with. The bytes come
// from a program that read strangers' bytes: suspect until `clew replay` has
// checked them. Thread-safe.
class ScheduleStore {
 public:
  // Makes the folder where there is none, and removes what a crash left.
  // `files` must outlive the store. kSystem.
  [[nodiscard]] static Result<std::unique_ptr<ScheduleStore>> Open(
      FileSystem& files, const std::string& folder);

  // After success on stable storage, in place of an older one. kLimit: larger
  // than transfer::kScheduleBytesMax. kSystem: the older one is there, or the
  // new one.
  [[nodiscard]] Status Put(const BundleId& id,
                           std::span<const std::byte> bytes);
  // nullopt: none. kSystem.
  [[nodiscard]] Result<std::optional<std::vector<std::byte>>> Read(
      const BundleId& id) const;
  // Absent is fine. kSystem.
  [[nodiscard]] Status Remove(const BundleId& id);

  std::vector<BundleId> List() const;  // ascending
  uint64_t used_bytes() const;

 private:
  ScheduleStore(FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}
  [[nodiscard]] Status Recover();
  std::string PathOf(const BundleId& id) const;

  FileSystem& files_;
  const std::string folder_;
  mutable std::mutex mutex_;  // over I/O: schedules are small and rare
  std::map<BundleId, uint64_t> sizes_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_STORE_SCHEDULE_STORE_H_
