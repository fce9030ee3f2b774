#include "tests/collector/samples.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#include <filesystem>
#include <fstream>

#include "common/check.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

FileList ListOf(const Files& files) {
  const TempFolder folder;
  WriteFiles(folder.path(), files);
  auto list = FileList::OfBundle(folder.path());
  CLEW_CHECK(list.has_value(), "{}", list.error().message);
  return *list;
}

// Containers may give all programs together 64 MB in memory; a test alone
// writes more.
constexpr uint64_t kRoomBytes = uint64_t{1} << 30;

std::string ParentOfFolders() {
  constexpr const char* kInMemory = "/dev/shm";
  struct statvfs disk{};
  const bool has_room =
      statvfs(kInMemory, &disk) == 0 &&
      static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize >= kRoomBytes;
  return has_room ? kInMemory : fs::temp_directory_path().string();
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = ParentOfFolders() + "/clew-collector-XXXXXX";
  CLEW_CHECK(mkdtemp(name.data()) != nullptr, "no folder {}", name);
  path_ = name;
}

TempFolder::~TempFolder() { fs::remove_all(path_); }

std::string TempFolder::operator/(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void WriteFiles(const std::string& folder, const Files& files) {
  for (const auto& [path, contents] : files) {
    const fs::path file = fs::path(folder) / path;
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << contents;
    out.close();
    CLEW_CHECK(out.good(), "cannot write {}", file.string());
  }
}

Files ReadFiles(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().string().substr(folder.size() + 1)] =
          std::string(std::istreambuf_iterator<char>(file), {});
    }
  }
  return files;
}

Sample::Sample(const Files& contents) : files(contents), list(ListOf(files)) {
  for (const FileEntry& file : list.files()) {
    for (size_t i = 0; i < file.chunks.size(); ++i) {
      chunks[file.chunks[i]] =
          files.at(file.path).substr(i * kChunkBytes, file.chunk(i).size_bytes);
    }
  }
}

Sample SmallSample(const std::string& own, const std::string& shared) {
  return Sample({{"manifest.pb", "a manifest"},
                 {"perf.data", own},
                 {"inputs.pb", ""},
                 {"images/c0ffee/libstdc++.so.6", shared}});
}

Status SendChunk(ChunkStore& store, const Sample& sample,
                 const ChunkRef& chunk) {
  CLEW_ASSIGN_OR_RETURN(upload, store.Begin(chunk));
  const std::string& bytes = sample.chunks.at(chunk.id);
  const size_t half = bytes.size() / 2;
  CLEW_RETURN_IF_ERROR(upload.Put(0, Bytes(bytes).first(half)));
  CLEW_RETURN_IF_ERROR(upload.Put(half, Bytes(bytes).subspan(half)));
  return upload.Finish();
}

Status SendBundle(BundleStore& store, const Sample& sample) {
  const auto wanted = sample.list.Chunks();
  for (const ChunkRef& chunk : store.chunks().Missing(wanted)) {
    CLEW_RETURN_IF_ERROR(SendChunk(store.chunks(), sample, chunk));
  }
  return store.Commit(sample.list, {.host = "web1", .received_at_s = 7});
}

BundleStore::Options StoreOptions(const std::string& folder,
                                  const uint64_t* now_s) {
  return {.folder = folder,
          .budget_bytes = uint64_t{1} << 30,
          .keep_s = ChunkStore::kKeepDay_s,
          .now_s = [now_s] { return *now_s; },
          .limits = {}};
}

}  // namespace clew::collector
