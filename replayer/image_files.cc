#include "replayer/image_files.h"

#include <filesystem>
#include <iterator>
#include <utility>

namespace clew::replayer {
namespace {

std::string Normal(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

constexpr std::string_view kUsr = "/usr";

}  // namespace

void ImageFiles::Add(std::string recorded_path, std::string stored_path) {
  std::string path = Normal(recorded_path);
  std::string base = BaseName(path);
  if (stored_.emplace(std::move(path), stored_path).second) {
    base_names_.emplace(std::move(base), std::move(stored_path));
  }
}

const std::string* ImageFiles::StoredPath(
    const std::string& recorded_path) const {
  const std::string other = recorded_path.starts_with("/usr/")
                                ? recorded_path.substr(kUsr.size())
                                : std::string(kUsr) + recorded_path;
  for (const std::string& path : {recorded_path, other}) {
    if (const auto found = stored_.find(path); found != stored_.end()) {
      return &found->second;
    }
  }
  const auto [first, last] = base_names_.equal_range(BaseName(recorded_path));
  return std::distance(first, last) == 1 ? &first->second : nullptr;
}

Result<std::span<const std::byte>> ImageFiles::Read(
    std::string_view recorded_path) {
  const std::string* const stored = StoredPath(Normal(recorded_path));
  if (stored == nullptr) {
    return InvalidArgument("{:?} is not among the recorded files",
                           recorded_path);
  }
  auto mapped = mapped_.find(*stored);
  if (mapped == mapped_.end()) {
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(*stored));
    mapped = mapped_.emplace(*stored, std::move(file)).first;
  }
  return mapped->second.bytes();
}

}  // namespace clew::replayer
