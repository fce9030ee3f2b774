#include "replayer/image_files.h"

#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "common/text/path_names.h"

namespace clew::replayer {
namespace {

std::string Normal(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().string();
}

constexpr std::string_view kUsr = "/usr";

// As far as both go, but at least an ELF header.
bool BeginsWith(std::span<const std::byte> contents,
                std::span<const std::byte> start) {
  const size_t size = std::min(contents.size(), start.size());
  return size >= sizeof(Elf64_Ehdr) &&
         std::ranges::equal(contents.first(size), start.first(size));
}

}  // namespace

void ImageFiles::Add(const std::string& recorded_path,
                     const std::string& stored_path) {
  std::string path = Normal(recorded_path);
  std::string base = BaseName(path);
  if (stored_.emplace(std::move(path), stored_path).second) {
    base_names_.emplace(std::move(base), stored_path);
  }
}

const std::string* ImageFiles::ByPath(const std::string& recorded_path) const {
  const std::string other = recorded_path.starts_with("/usr/")
                                ? recorded_path.substr(kUsr.size())
                                : std::string(kUsr) + recorded_path;
  for (const std::string& path : {recorded_path, other}) {
    if (const auto found = stored_.find(path); found != stored_.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

const std::string* ImageFiles::ByBaseName(
    const std::string& recorded_path) const {
  const auto [first, last] = base_names_.equal_range(BaseName(recorded_path));
  return std::distance(first, last) == 1 ? &first->second : nullptr;
}

std::optional<ImageFiles::Contents> ImageFiles::ByStart(Contents start) {
  std::optional<Contents> found;
  for (const auto& [path, stored] : stored_) {
    const auto contents = Map(stored);
    if (!contents || !BeginsWith(*contents, start)) {
      continue;
    }
    if (found && !std::ranges::equal(*found, *contents)) {
      return std::nullopt;
    }
    found = *contents;
  }
  return found;
}

Result<ImageFiles::Contents> ImageFiles::Map(const std::string& stored_path) {
  auto mapped = mapped_.find(stored_path);
  if (mapped == mapped_.end()) {
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(stored_path));
    mapped = mapped_.emplace(stored_path, std::move(file)).first;
  }
  return mapped->second.bytes();
}

Result<std::span<const std::byte>> ImageFiles::Read(
    std::string_view recorded_path, std::span<const std::byte> start) {
  const std::string path = Normal(recorded_path);
  if (const std::string* const stored = ByPath(path)) {
    return Map(*stored);
  }
  if (const auto contents = ByStart(start)) {
    return *contents;
  }
  if (const std::string* const stored = ByBaseName(path)) {
    return Map(*stored);
  }
  return InvalidArgument("{:?} is not among the recorded files", recorded_path);
}

}  // namespace clew::replayer
