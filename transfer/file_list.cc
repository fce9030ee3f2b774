#include "transfer/file_list.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/build_id.h"
#include "common/check.h"
#include "common/os/file.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"
#include "proto/collector_store.pb.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kFormatVersion = 1;
// An unsolved bundle and a solve that died may share a folder.
constexpr std::string_view kUnfinishedSchedule = "schedule.pb.partial";
constexpr std::array<std::string_view, 7> kTopNames = {
    "core",      "core.zst",    "inputs.pb", "manifest.pb",
    "perf.data", "schedule.pb", "start.pb"};

uint64_t ChunkCount(uint64_t size_bytes) {
  return size_bytes / kChunkBytes + (size_bytes % kChunkBytes != 0 ? 1 : 0);
}

bool IsBuildId(std::string_view text) {
  return !text.empty() && text.size() % 2 == 0 &&
         text.size() <= 2 * kImageIdBytesMax && IsHex(text);
}

// What a message quotes of a stranger's text.
std::string_view Short(std::string_view text) { return text.substr(0, 80); }

Status CheckFile(const FileEntry& file, std::string_view where) {
  if (const Status path = CheckPath(file.path); !path) {
    return InvalidArgument("file list: {}.path: {}", where,
                           path.error().message);
  }
  if (file.chunks.size() != ChunkCount(file.size_bytes)) {
    return CorruptInput(
        "file list: {} {:?}: {} chunks, wanted {} for size_bytes {}", where,
        file.path, file.chunks.size(), ChunkCount(file.size_bytes),
        file.size_bytes);
  }
  return {};
}

Status CheckOrder(const std::vector<FileEntry>& files) {
  for (size_t i = 1; i < files.size(); ++i) {
    if (files[i].path == files[i - 1].path) {
      return CorruptInput("file list: files[{}].path: {:?} is there twice", i,
                          files[i].path);
    }
    if (files[i].path < files[i - 1].path) {
      return CorruptInput(
          "file list: files[{}].path: {:?} comes after {:?}, wanted ascending "
          "order of bytes",
          i, files[i].path, files[i - 1].path);
    }
  }
  return {};
}

Status CheckBundle(const std::vector<FileEntry>& files) {
  const auto has = [&](std::string_view path) {
    return std::ranges::binary_search(files, path, {}, &FileEntry::path);
  };
  for (const std::string_view needed : {"manifest.pb", "perf.data"}) {
    if (!has(needed)) {
      return InvalidArgument("file list: no {}; every bundle has one", needed);
    }
  }
  if (has("core") && has("core.zst")) {
    return InvalidArgument(
        "file list: core and core.zst; a bundle has at most one of them");
  }
  return {};
}

Status CheckSizes(const std::vector<FileEntry>& files,
                  const FileListLimits& limits) {
  uint64_t left_bytes = limits.bundle_bytes_max;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].size_bytes > left_bytes) {
      return LimitReached(
          "file list: files[{}] {:?}: size_bytes is {}, {} are left of the {} "
          "bytes that a bundle may have here; record less or have the limit "
          "raised",
          i, files[i].path, files[i].size_bytes, left_bytes,
          limits.bundle_bytes_max);
    }
    left_bytes -= files[i].size_bytes;
  }
  return {};
}

// A digest that is claimed for chunks of two sizes is false for one of them.
Status CheckDigests(const std::vector<ChunkRef>& chunks) {
  for (size_t i = 1; i < chunks.size(); ++i) {
    if (chunks[i].id == chunks[i - 1].id) {
      return CorruptInput(
          "file list: chunk {} is claimed to have {} bytes and {} bytes",
          chunks[i].id.hex(), chunks[i - 1].size_bytes, chunks[i].size_bytes);
    }
  }
  return {};
}

Status CheckCount(size_t files, const FileListLimits& limits) {
  if (files > limits.files_max) {
    return LimitReached(
        "file list: {} files, at most {} are taken here; record less or have "
        "the limit raised",
        files, limits.files_max);
  }
  return {};
}

void AddLittleEndian(Sha256& digest, uint64_t value, size_t bytes) {
  std::array<std::byte, 8> encoded{};
  for (size_t i = 0; i < bytes; ++i) {
    encoded[i] = static_cast<std::byte>(value >> (8 * i));
  }
  digest.Add(std::span(encoded).first(bytes));
}

BundleId IdOf(const std::vector<FileEntry>& files) {
  constexpr std::string_view kHead = "clew file list 1\n";
  Sha256 digest;
  digest.Add(std::as_bytes(std::span(kHead)));
  for (const FileEntry& file : files) {
    AddLittleEndian(digest, file.path.size(), 4);
    digest.Add(std::as_bytes(std::span(file.path)));
    AddLittleEndian(digest, file.size_bytes, 8);
    for (const ChunkId& chunk : file.chunks) {
      digest.Add(chunk.bytes());
    }
  }
  return BundleId(digest.Finish());
}

Result<FileEntry> ReadEntry(const pb::FileList::File& from, int index) {
  FileEntry file{
      .path = from.path(), .size_bytes = from.size_bytes(), .chunks = {}};
  const std::string& digests = from.chunk_digests();
  if (digests.size() % Sha256::kBytes != 0) {
    return CorruptInput(
        "file list: files[{}].chunk_digests: {} bytes, wanted a multiple of {}",
        index, digests.size(), Sha256::kBytes);
  }
  const auto bytes = std::as_bytes(std::span(digests));
  for (size_t at = 0; at < bytes.size(); at += Sha256::kBytes) {
    file.chunks.emplace_back(bytes.subspan(at, Sha256::kBytes));
  }
  return file;
}

// Digests files, and says how far it is.
class Digester {
 public:
  Digester(uint64_t bytes_total, ProgressSink* progress)
      : bytes_total_(bytes_total), progress_(progress) {}

  Result<FileEntry> Digest(const std::string& folder, const std::string& path) {
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(folder + "/" + path));
    auto bytes = file.bytes();
    FileEntry entry{.path = path, .size_bytes = bytes.size(), .chunks = {}};
    while (!bytes.empty()) {
      const auto chunk = bytes.first(std::min(bytes.size(), kChunkBytes));
      entry.chunks.emplace_back(Sha256Of(chunk));
      bytes = bytes.subspan(chunk.size());
      bytes_done_ += chunk.size();
      if (progress_ != nullptr) {
        progress_->Update(bytes_done_, bytes_total_);
      }
    }
    return entry;
  }

 private:
  const uint64_t bytes_total_;
  ProgressSink* const progress_;
  uint64_t bytes_done_ = 0;
};

// What cannot be asked for its size counts nothing: opening it says why.
uint64_t SizeOf(const std::string& folder,
                const std::vector<std::string>& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const uint64_t size = fs::file_size(fs::path(folder) / path, error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

// Paths of the files below `folder`, relative to it, ascending.
Result<std::vector<std::string>> PathsBelow(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const fs::file_status status = at->symlink_status(error);
    if (error || fs::is_directory(status)) {
      continue;
    }
    std::string path = at->path().string().substr(folder.size() + 1);
    if (path == kUnfinishedSchedule) {
      continue;
    }
    if (!fs::is_regular_file(status)) {
      return InvalidArgument("{:?}: {:?} is no regular file", folder, path);
    }
    paths.push_back(std::move(path));
  }
  if (error) {
    return SystemError(error.value(), fmt::format("cannot list {:?}", folder));
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

ChunkRef FileEntry::chunk(size_t index) const {
  return {.id = chunks[index],
          .size_bytes = std::min(kChunkBytes,
                                 size_bytes - uint64_t{index} * kChunkBytes)};
}

Status CheckPath(std::string_view path) {
  if (std::ranges::binary_search(kTopNames, path)) {
    return {};
  }
  constexpr std::string_view kImages = "images/";
  if (path.starts_with(kImages)) {
    const std::string_view rest = path.substr(kImages.size());
    const size_t slash = rest.find('/');
    if (slash != rest.npos && IsBuildId(rest.substr(0, slash)) &&
        IsImageFileName(rest.substr(slash + 1))) {
      return {};
    }
  }
  return InvalidArgument(
      "{:?} ({} bytes) is no file of a bundle; wanted manifest.pb, perf.data, "
      "start.pb, inputs.pb, core, core.zst, schedule.pb or "
      "images/<build-id>/<name> with a name of [A-Za-z0-9._+@=,~-]",
      Short(path), path.size());
}

FileList::FileList(std::vector<FileEntry> files)
    : files_(std::move(files)), id_(IdOf(files_)) {
  for (const FileEntry& file : files_) {
    size_bytes_ += file.size_bytes;
  }
}

Result<FileList> FileList::Make(std::vector<FileEntry> files,
                                const FileListLimits& limits) {
  CLEW_RETURN_IF_ERROR(CheckCount(files.size(), limits));
  CLEW_RETURN_IF_ERROR(CheckSizes(files, limits));
  for (size_t i = 0; i < files.size(); ++i) {
    CLEW_RETURN_IF_ERROR(CheckFile(files[i], fmt::format("files[{}]", i)));
  }
  CLEW_RETURN_IF_ERROR(CheckOrder(files));
  CLEW_RETURN_IF_ERROR(CheckBundle(files));
  FileList list(std::move(files));
  CLEW_RETURN_IF_ERROR(CheckDigests(list.Chunks()));
  return list;
}

Result<FileList> FileList::OfBundle(const std::string& folder,
                                    const FileListLimits& limits,
                                    ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(paths, PathsBelow(folder));
  CLEW_RETURN_IF_ERROR(CheckCount(paths.size(), limits));
  Digester digester(SizeOf(folder, paths), progress);
  std::vector<FileEntry> files;
  for (const std::string& path : paths) {
    if (const Status valid = CheckPath(path); !valid) {
      return InvalidArgument("{:?}: {}", folder, valid.error().message);
    }
    CLEW_ASSIGN_OR_RETURN(file, digester.Digest(folder, path));
    files.push_back(std::move(file));
  }
  return Make(std::move(files), limits);
}

Result<FileList> FileList::Parse(std::span<const std::byte> bytes_untrusted,
                                 const FileListLimits& limits) {
  if (bytes_untrusted.size() > limits.encoded_bytes_max) {
    return LimitReached(
        "file list: {} bytes, at most {} are taken here; record less or have "
        "the limit raised",
        bytes_untrusted.size(), limits.encoded_bytes_max);
  }
  pb::FileList from;
  if (!from.ParseFromArray(bytes_untrusted.data(),
                           static_cast<int>(bytes_untrusted.size()))) {
    return CorruptInput("file list: {} bytes that are no clew.pb.FileList",
                        bytes_untrusted.size());
  }
  if (from.format_version() != kFormatVersion) {
    return Unsupported(
        "file list: format_version is {}, wanted {}; install the same version "
        "of clew on both sides",
        from.format_version(), kFormatVersion);
  }
  CLEW_RETURN_IF_ERROR(
      CheckCount(static_cast<size_t>(from.files_size()), limits));
  std::vector<FileEntry> files;
  for (int i = 0; i < from.files_size(); ++i) {
    CLEW_ASSIGN_OR_RETURN(file, ReadEntry(from.files(i), i));
    files.push_back(std::move(file));
  }
  return Make(std::move(files), limits);
}

std::vector<std::byte> FileList::Encode() const {
  pb::FileList to;
  to.set_format_version(kFormatVersion);
  for (const FileEntry& file : files_) {
    pb::FileList::File& entry = *to.add_files();
    entry.set_path(file.path);
    entry.set_size_bytes(file.size_bytes);
    for (const ChunkId& chunk : file.chunks) {
      entry.mutable_chunk_digests()->append(
          reinterpret_cast<const char*>(chunk.bytes().data()),
          chunk.bytes().size());
    }
  }
  std::vector<std::byte> bytes(to.ByteSizeLong());
  CLEW_CHECK(to.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())),
             "a file list of {} bytes cannot be encoded", bytes.size());
  return bytes;
}

std::vector<ChunkRef> FileList::Chunks() const {
  std::vector<ChunkRef> chunks;
  for (const FileEntry& file : files_) {
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      chunks.push_back(file.chunk(i));
    }
  }
  std::ranges::sort(chunks);
  const auto rest = std::ranges::unique(chunks);
  chunks.erase(rest.begin(), rest.end());
  return chunks;
}

}  // namespace clew::transfer
