#ifndef CLEW_TRANSFER_FILE_LIST_H_
#define CLEW_TRANSFER_FILE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "transfer/sha256.h"

namespace clew::transfer {

// A file is cut into chunks of this size; its last chunk has the rest, at least
// one byte. A file of no bytes has no chunk.
inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

struct ChunkRef {
  ChunkId id;
  uint64_t size_bytes = 0;  // 1..kChunkBytes
  auto operator<=>(const ChunkRef&) const = default;
};

struct FileEntry {
  std::string path;
  uint64_t size_bytes = 0;
  std::vector<ChunkId> chunks;  // in the order of the file

  // REQUIRES: index < chunks.size().
  ChunkRef chunk(size_t index) const;
  bool operator==(const FileEntry&) const = default;
};

struct FileListLimits {
  uint64_t bundle_bytes_max = uint64_t{8} << 30;
  size_t files_max = 4096;
  size_t encoded_bytes_max = size_t{2} << 20;
};

// Succeeds if `path` is a name that the bundle format has
// (docs/format/bundle.md, "Files") and that is safe to make a file of:
// manifest.pb, perf.data, start.pb, inputs.pb, core, core.zst, schedule.pb,
// images/<build-id>/<name>. Fails with kInvalidArgument, which says what is
// wrong with it.
[[nodiscard]] Status CheckPath(std::string_view path);

// The files of one bundle by size and content, valid as
// proto/collector_store.proto says, ascending by path. A value; immutable.
class FileList {
 public:
  // Reads every byte of the bundle at `folder`; schedule.pb.partial is left
  // out. `progress` is in bytes, and may be nullptr. Fails with
  // kInvalidArgument if the folder is not a bundle or holds a file that the
  // format does not have, with kLimit if it is too large, and with kSystem if
  // it cannot be read. REQUIRES: nobody writes to the folder.
  [[nodiscard]] static Result<FileList> OfBundle(
      const std::string& folder, const FileListLimits& limits = {},
      ProgressSink* progress = nullptr);
  // Reads a list that a stranger sent. Fails with kCorruptInput if it breaks
  // the format, with kInvalidArgument if it has a path that CheckPath refuses,
  // and with kLimit if it claims more than `limits`. The cost is linear in
  // bytes_untrusted.size(), whatever sizes it claims.
  [[nodiscard]] static Result<FileList> Parse(
      std::span<const std::byte> bytes_untrusted,
      const FileListLimits& limits = {});

  // Returns the bytes that Parse reads back as the same list.
  std::vector<std::byte> Encode() const;
  const std::vector<FileEntry>& files() const { return files_; }
  const BundleId& id() const { return id_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Returns each chunk once, ascending.
  std::vector<ChunkRef> Chunks() const;
  bool operator==(const FileList&) const = default;

 private:
  explicit FileList(std::vector<FileEntry> files);
  [[nodiscard]] static Result<FileList> Make(std::vector<FileEntry> files,
                                             const FileListLimits& limits);

  std::vector<FileEntry> files_;
  uint64_t size_bytes_ = 0;
  BundleId id_;
};

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_FILE_LIST_H_
