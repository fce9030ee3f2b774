#include "recorder/images.h"

#include <elf.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "common/digest.h"
#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "recorder/vdso.h"

namespace clew::recorder {
namespace {

template <class T>
std::optional<T> At(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

uint64_t Align4(uint64_t n) { return (n + 3) / 4 * 4; }

std::vector<uint8_t> BuildIdIn(std::span<const std::byte> notes) {
  uint64_t at = 0;
  while (const auto head = At<Elf64_Nhdr>(notes, at)) {
    const uint64_t name_at = at + sizeof(*head);
    const uint64_t body_at = name_at + Align4(head->n_namesz);
    const uint64_t end = body_at + head->n_descsz;
    if (end > notes.size()) {
      return {};
    }
    const bool gnu = head->n_namesz == 4 &&
                     std::memcmp(notes.data() + name_at, "GNU", 4) == 0;
    if (gnu && head->n_type == NT_GNU_BUILD_ID) {
      const auto* body = reinterpret_cast<const uint8_t*>(notes.data());
      return {body + body_at, body + end};
    }
    at = body_at + Align4(head->n_descsz);
  }
  return {};
}

}  // namespace

std::vector<uint8_t> BuildIdOf(std::span<const std::byte> file) {
  const auto head = At<Elf64_Ehdr>(file, 0);
  if (!head.has_value() || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
    return {};
  }
  for (unsigned i = 0; i < head->e_phnum; ++i) {
    const auto segment =
        At<Elf64_Phdr>(file, head->e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
    if (!segment.has_value()) {
      return {};
    }
    const bool inside = segment->p_offset <= file.size() &&
                        segment->p_filesz <= file.size() - segment->p_offset;
    if (segment->p_type == PT_NOTE && inside) {
      auto id = BuildIdIn(file.subspan(segment->p_offset, segment->p_filesz));
      if (!id.empty()) {
        return id;
      }
    }
  }
  return {};
}

namespace {

// The build-id, or a digest.
std::vector<uint8_t> IdOf(std::span<const std::byte> file) {
  std::vector<uint8_t> id = BuildIdOf(file);
  if (id.empty()) {
    const uint64_t digest = Digest(file);
    id.resize(sizeof(digest));
    std::memcpy(id.data(), &digest, sizeof(digest));
  }
  return id;
}

}  // namespace

namespace {

ImageInfo Describe(const std::string& path, std::span<const std::byte> file) {
  return {.path = path,
          .source = {},
          .build_id = IdOf(file),
          .has_build_id = !BuildIdOf(file).empty(),
          .size_bytes = file.size()};
}

}  // namespace

Result<ImageInfo> DescribeImageAs(const std::string& path,
                                  const std::string& source) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(source));
  ImageInfo image = Describe(path, file.bytes());
  image.source = source;
  return image;
}

Result<ImageInfo> DescribeImage(const std::string& path) {
  if (path == kVdsoPath) {
    if (OwnVdso().empty()) {
      return Unsupported("this kernel has no vDSO for our own process");
    }
    return Describe(path, OwnVdso());
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  return Describe(path, file.bytes());
}

Status CopyImages(BundleWriter& bundle, const std::vector<ImageInfo>& images) {
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  std::set<std::string> made;
  for (const ImageInfo& image : images) {
    const std::string folder = "images/" + ToHex(image.build_id);
    if (made.insert(folder).second) {
      CLEW_RETURN_IF_ERROR(bundle.MakeFolder(folder));
    }
    const std::string name = folder + "/" + ImageFileName(image.path);
    if (!made.insert(name).second) {
      continue;
    }
    if (image.path == kVdsoPath) {
      CLEW_RETURN_IF_ERROR(bundle.Write(name, OwnVdso()));
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(
        file,
        MappedFile::Open(image.source.empty() ? image.path : image.source));
    if (IdOf(file.bytes()) != image.build_id) {
      return SystemError(EBUSY,
                         fmt::format("{:?} was replaced while it was recorded; "
                                     "record again",
                                     image.path));
    }
    CLEW_RETURN_IF_ERROR(bundle.Write(name, file.bytes()));
  }
  return {};
}

}  // namespace clew::recorder
