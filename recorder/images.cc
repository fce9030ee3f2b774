#include "recorder/images.h"

#include <cerrno>
#include <set>

#include "common/build_id.h"
#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "recorder/vdso.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;

std::vector<uint8_t> Octets(std::span<const std::byte> bytes) {
  const auto* first = reinterpret_cast<const uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

}  // namespace

std::vector<uint8_t> BuildIdOf(std::span<const std::byte> file) {
  return Octets(clew::BuildIdOf(file));
}

std::vector<uint8_t> ImageIdOf(std::span<const std::byte> file) {
  return Octets(clew::ImageIdOf(file));
}

namespace {

ImageInfo Describe(const std::string& path, std::span<const std::byte> file) {
  return {.path = path,
          .source = {},
          .build_id = ImageIdOf(file),
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
    if (ImageIdOf(file.bytes()) != image.build_id) {
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
