#ifndef CLEW_BUNDLE_MANIFEST_BUNDLE_WRITER_H_
#define CLEW_BUNDLE_MANIFEST_BUNDLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/os/file.h"
#include "common/progress.h"
#include "common/result.h"

namespace clew::bundle {

// A bundle being written. `<out>.partial/`, locked: a recorder is writing;
// unlocked: it died, and the next one removes it; no reader opens it. `<out>/`:
// complete, every byte synced before the rename. Nothing else exists.
//
// Unless published, the partial folder is removed when the writer is destroyed.
// Not thread-safe. Moves.
class BundleWriter {
 public:
  // Makes the partial folder. `files` must outlive the writer. Fails with
  // kInvalidArgument if `out` exists or another recorder is writing it.
  [[nodiscard]] static Result<BundleWriter> Create(FileSystem& files,
                                                   const std::string& out);
  BundleWriter(BundleWriter&& other) noexcept = default;
  BundleWriter& operator=(BundleWriter&&) = delete;
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;
  ~BundleWriter();

  // Absolute; others may write files below it.
  const std::string& folder() const { return partial_; }
  FileSystem& files() { return files_; }

  // Writes one file below the folder, synced.
  [[nodiscard]] Status Write(const std::string& name,
                             std::span<const std::byte> bytes);
  // Copies what `fd` gives until its end to the file `name`, synced; returns
  // how many bytes. Memory: one buffer. `source` names it in messages; `total`
  // is its size for `progress` (may be null), 0 if not known.
  [[nodiscard]] Result<uint64_t> CopyFrom(const std::string& name, int fd,
                                          const std::string& source,
                                          uint64_t total,
                                          ProgressSink* progress);
  // Makes a folder below the folder.
  [[nodiscard]] Status MakeFolder(const std::string& name);
  // Syncs a file below the folder that another process wrote.
  [[nodiscard]] Status Sync(const std::string& name);
  // Makes all names durable and renames the folder to `out`.
  // REQUIRES: every file is synced.
  [[nodiscard]] Status Publish();
  // In its place: renames `name` below the folder, a bundle that another writer
  // has published there, to `out`. The rest of the folder is removed as ever.
  [[nodiscard]] Status PublishInner(const std::string& name);

 private:
  BundleWriter(FileSystem& files, std::string out, Fd lock);
  [[nodiscard]] Status SyncOut();

  FileSystem& files_;
  std::string out_;
  std::string partial_;
  std::vector<std::string> folders_;  // made, to be synced
  Fd lock_;
  bool published_ = false;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_BUNDLE_WRITER_H_
