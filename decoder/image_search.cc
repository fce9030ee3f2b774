#include "decoder/image_search.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "decoder/host_images.h"

namespace clew::decoder {
namespace {

namespace fs = std::filesystem;

// What the kernel adds to the path of a file that was unlinked.
constexpr std::string_view kDeleted = " (deleted)";

bool IsRegular(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// "[vdso]", "//anon", "[kernel.kallsyms]_stext".
bool NamesAFile(const std::string& path) {
  const std::string name = BaseName(path);
  return path.starts_with('/') && !path.starts_with("//") && !name.empty() &&
         name != "." && name != "..";
}

}  // namespace

Result<ImageSearch> ImageSearch::Create(
    const std::vector<std::string>& folders) {
  ImageSearch search;
  for (const std::string& folder : folders) {
    CLEW_RETURN_IF_ERROR(search.AddFolder(folder));
  }
  return search;
}

Status ImageSearch::AddFolder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return InvalidArgument("{:?} is no folder of images", folder);
  }
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!IsRegular(path)) {
      continue;
    }
    if (known_.size() >= kFilesMax) {
      return LimitReached(
          "{:?} has more than {} files; name a smaller folder of images",
          folder, kFilesMax);
    }
    if (const auto file = MappedFile::Open(path)) {
      known_.push_back({path, BuildIdOf(file->bytes())});
    }
  }
  if (error) {
    return SystemError(error.value(), fmt::format("cannot list {:?}", folder));
  }
  return {};
}

const ImageMatch& ImageSearch::Find(const MmapRecord& mapping) {
  const auto [at, is_new] = asked_.emplace(
      std::pair(mapping.path, mapping.build_id), matches_.size());
  if (is_new) {
    ImageMatch match{.path = mapping.path,
                     .build_id = mapping.build_id,
                     .file = {},
                     .why = {},
                     .refused = {}};
    Search(match);
    matches_.push_back(std::move(match));
  }
  return matches_[at->second];
}

void ImageSearch::Search(ImageMatch& match) const {
  if (!NamesAFile(match.path)) {
    match.why = "no file was mapped";
    return;
  }
  if (match.build_id.empty()) {
    match.why = "the recording has no build-id of it";
    return;
  }
  Consider(match.path, match);
  if (match.path.ends_with(kDeleted)) {
    Consider(match.path.substr(0, match.path.size() - kDeleted.size()), match);
  }
  for (const Known& known : known_) {
    if (known.build_id == match.build_id ||
        BaseName(known.file) == BaseName(match.path)) {
      Consider(known.file, match);
    }
  }
  if (match.file.empty()) {
    match.why = match.refused.empty() ? "not found" : "only others were found";
  }
}

void ImageSearch::Consider(const std::string& path, ImageMatch& match) const {
  if (!match.file.empty() || !IsRegular(path)) {
    return;
  }
  const auto file = MappedFile::Open(path);
  if (!file) {
    match.refused.push_back({path, file.error().message});
    return;
  }
  const auto build_id = BuildIdOf(file->bytes());
  if (build_id != match.build_id) {
    match.refused.push_back({path, build_id.empty()
                                       ? "it has no build-id"
                                       : "its build-id is " + ToHex(build_id)});
  } else if (const char* lack = LacksCode(file->bytes())) {
    match.refused.push_back({path, lack});
  } else {
    match.file = path;
  }
}

}  // namespace clew::decoder
