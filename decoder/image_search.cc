#include "decoder/image_search.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "common/build_id.h"
#include "common/os/file.h"
#include "common/os/maps_path.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"
#include "decoder/code_file.h"

namespace clew::decoder {
namespace {

using bundle::MmapRecord;

namespace fs = std::filesystem;

// perf's process of what the kernel has mapped.
constexpr int32_t kKernelPid = -1;

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

// How many components the ends of two paths have in common.
size_t SharedComponents(const fs::path& a, const fs::path& b) {
  size_t shared = 0;
  auto of_a = a.end();
  auto of_b = b.end();
  for (; of_a != a.begin() && of_b != b.begin(); ++shared) {
    --of_a;
    --of_b;
    if (*of_a != *of_b) {
      break;
    }
  }
  return shared;
}

bool HaveSameBytes(const std::vector<std::string>& files) {
  std::optional<MappedFile> first;
  for (const std::string& path : files) {
    auto file = MappedFile::Open(path);
    if (!file ||
        (first && !std::ranges::equal(first->bytes(), file->bytes()))) {
      return false;
    }
    if (!first) {
      first = std::move(*file);
    }
  }
  return true;
}

// Why the bytes of a file are not those that ran; empty if nothing tells so.
std::string WhyNot(std::span<const std::byte> file, const MmapRecord& mapping) {
  const bool by_path = mapping.build_id.empty();
  const auto build_id = BuildIdOf(file);
  if (!by_path && build_id != mapping.build_id) {
    return build_id.empty() ? "it has no build-id"
                            : "its build-id is " + ToHex(build_id);
  }
  if (const char* lack = LacksCode(file)) {
    return lack;
  }
  return by_path && !HasCodeIn(file, mapping.file_offset, mapping.size_bytes)
             ? fmt::format("it has no code at offset {:#x}, which was mapped",
                           mapping.file_offset)
             : "";
}

// Takes the file, or notes why not.
void Consider(const std::string& path, const MmapRecord& mapping,
              ImageMatch& match) {
  if (!match.file.empty() || !IsRegular(path)) {
    return;
  }
  const auto file = MappedFile::Open(path);
  const std::string why =
      file ? WhyNot(file->bytes(), mapping) : file.error().message;
  if (!why.empty()) {
    match.refused.push_back({path, why});
    return;
  }
  match.file = path;
  match.verified = !mapping.build_id.empty();
}

}  // namespace

Result<ImageSearch> ImageSearch::Create(
    const std::vector<std::string>& places) {
  ImageSearch search;
  for (const std::string& place : places) {
    CLEW_RETURN_IF_ERROR(search.AddPlace(place));
  }
  return search;
}

Status ImageSearch::AddPlace(const std::string& place) {
  std::error_code error;
  if (fs::is_directory(place, error)) {
    return AddFolder(place);
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(place));
  if (const char* lack = LacksCode(file.bytes())) {
    return InvalidArgument("{:?} is no folder of images, nor an image: {}",
                           place, lack);
  }
  return AddFile(place, place);
}

Status ImageSearch::AddFolder(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (IsRegular(path)) {
      CLEW_RETURN_IF_ERROR(AddFile(path, folder));
    }
  }
  if (error) {
    return SystemError(error.value(), fmt::format("cannot list {:?}", folder));
  }
  return {};
}

Status ImageSearch::AddFile(const std::string& path, const std::string& place) {
  if (known_.size() >= kFilesMax) {
    return LimitReached(
        "{:?} has more than {} files; name a smaller folder of images", place,
        kFilesMax);
  }
  if (const auto file = MappedFile::Open(path)) {
    known_.push_back({path, BuildIdOf(file->bytes())});
  }
  return {};
}

size_t ImageSearch::CountUnverified() const {
  return static_cast<size_t>(
      std::ranges::count_if(matches_, [](const ImageMatch& match) {
        return !match.file.empty() && !match.verified;
      }));
}

ImageResolver ImageSearch::Resolver() {
  return [this](const MmapRecord& mapping) {
    return mapping.executable ? Find(mapping).file : std::string();
  };
}

const ImageMatch& ImageSearch::Find(const MmapRecord& mapping) {
  const auto [at, is_new] =
      asked_.try_emplace(std::pair(mapping.path, mapping.build_id));
  Asked& asked = at->second;
  if (is_new) {
    asked.match = matches_.size();
    matches_.emplace_back();
  }
  ImageMatch& match = matches_[asked.match];
  const bool may_differ =
      match.file.empty() && !match.refused.empty() && mapping.build_id.empty();
  if (is_new ||
      (may_differ && asked.offsets.insert(mapping.file_offset).second)) {
    match = {.path = mapping.path,
             .build_id = mapping.build_id,
             .file = {},
             .why = {},
             .of_kernel = mapping.pid == kKernelPid,
             .refused = {}};
    Search(mapping, match);
  }
  return match;
}

void ImageSearch::AddVdsoOfRun(const std::string& file, TraceeAddr addr) {
  vdsos_.push_back({.file = file, .addr = addr});
}

void ImageSearch::AddVdsoOfHost(const std::string& file) {
  vdsos_.push_back({.file = file, .addr = {}});
}

void ImageSearch::Search(const MmapRecord& mapping, ImageMatch& match) const {
  if (match.path == kVdsoPath) {
    SearchVdso(mapping, match);
    return;
  }
  if (!NamesAFile(match.path)) {
    match.why = "no file was mapped";
    return;
  }
  if (match.build_id.empty()) {
    SearchByPath(mapping, match);
  } else {
    SearchByBuildId(mapping, match);
  }
  if (match.file.empty()) {
    match.why = match.refused.empty() ? "not found" : "only others were found";
  }
}

// At the address where the recorded process had it, it is what ran.
void ImageSearch::SearchVdso(const MmapRecord& mapping,
                             ImageMatch& match) const {
  for (const Vdso& vdso : vdsos_) {
    if (!vdso.addr && mapping.build_id.empty()) {
      continue;
    }
    Consider(vdso.file, mapping, match);
    if (match.file == vdso.file) {
      match.verified |= vdso.addr == mapping.addr;
      match.from_core = vdso.addr.has_value();
    }
  }
  if (match.file.empty()) {
    match.why = "it is in no file; a core dump of the run has it (--core)";
  }
  match.refused.clear();  // those are files that nobody named
}

void ImageSearch::SearchByBuildId(const MmapRecord& mapping,
                                  ImageMatch& match) const {
  Consider(match.path, mapping, match);
  if (IsDeleted(match.path)) {
    Consider(std::string(WithoutDeleted(match.path)), mapping, match);
  }
  for (const Known& known : known_) {
    if (known.build_id == match.build_id ||
        BaseName(known.file) == BaseName(match.path)) {
      Consider(known.file, mapping, match);
    }
  }
}

// What has the path of an unlinked file now is another file.
void ImageSearch::SearchByPath(const MmapRecord& mapping,
                               ImageMatch& match) const {
  const auto nearest = NearestTo(std::string(WithoutDeleted(match.path)));
  if (HaveSameBytes(nearest)) {
    for (const std::string& file : nearest) {
      Consider(file, mapping, match);
    }
  } else {
    for (const std::string& file : nearest) {
      match.refused.push_back(
          {file, "another file has as much of the path, and other bytes"});
    }
  }
  Consider(match.path, mapping, match);
}

// Of the known files with its name, those that share the most of the path.
std::vector<std::string> ImageSearch::NearestTo(const std::string& path) const {
  std::vector<std::string> nearest;
  size_t most = 1;
  for (const Known& known : known_) {
    const size_t shared = SharedComponents(known.file, path);
    if (shared > most) {
      nearest.clear();
      most = shared;
    }
    if (shared == most) {
      nearest.push_back(known.file);
    }
  }
  return nearest;
}

}  // namespace clew::decoder
