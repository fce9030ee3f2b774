#include "bundle/manifest/images.h"

#include <cerrno>

#include "common/build_id.h"
#include "common/os/file.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"
#include "common/text/utf8.h"

namespace clew::bundle {

Result<ImageFolder> ImageFolder::Create(BundleWriter& bundle) {
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  return ImageFolder(bundle);
}

Result<std::optional<std::string>> ImageFolder::NewName(
    const std::string& path, std::span<const std::byte> build_id) {
  const std::string folder = "images/" + ToHex(build_id);
  // The manifest has the path as UTF-8, and readers know no other.
  std::string name = folder + "/" + ImageFileName(Utf8(path));
  if (!made_.insert(name).second) {
    return std::optional<std::string>();
  }
  if (made_.insert(folder).second) {
    CLEW_RETURN_IF_ERROR(bundle_->MakeFolder(folder));
  }
  return std::optional(std::move(name));
}

Status CopyImages(BundleWriter& bundle, const std::vector<BundleImage>& images,
                  std::span<const std::byte> vdso) {
  CLEW_ASSIGN_OR_RETURN(folder, ImageFolder::Create(bundle));
  for (const BundleImage& image : images) {
    const bool is_vdso =
        image.file.empty() && image.path == kVdsoPath && !vdso.empty();
    if (image.file.empty() && !is_vdso) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(name, folder.NewName(image.path, image.build_id));
    if (!name) {
      continue;
    }
    if (is_vdso) {
      CLEW_RETURN_IF_ERROR(bundle.Write(*name, vdso));
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(image.file));
    if (ImageIdOf(file.bytes()) != image.build_id) {
      return SystemError(
          EBUSY,
          fmt::format("{:?} was replaced before it was copied; try again",
                      image.file));
    }
    CLEW_RETURN_IF_ERROR(bundle.Write(*name, file.bytes()));
  }
  return {};
}

}  // namespace clew::bundle
