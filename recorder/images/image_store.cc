#include "recorder/images/image_store.h"

#include "common/os/file.h"
#include "common/text/path_names.h"
#include "recorder/images/describe_image.h"

namespace clew::recorder {
namespace {

using bundle::BundleImage;
using bundle::BundleWriter;
using bundle::ImageFolder;

// Not a build-id in hexadecimal, so not the name of an image.
constexpr const char* kCopyName = "images/copy";

}  // namespace

Result<ImageStore> ImageStore::Create(BundleWriter& bundle) {
  CLEW_ASSIGN_OR_RETURN(folder, ImageFolder::Create(bundle));
  return ImageStore(bundle, std::move(folder));
}

std::string ImageStore::CopyPath() const {
  return bundle_->folder() + "/" + kCopyName;
}

Result<StoredImage> ImageStore::Store(ImageSource& source,
                                      const MappedImage& image,
                                      uint64_t bytes_max) {
  CLEW_ASSIGN_OR_RETURN(why, source.CopyTo(image, bytes_max, CopyPath()));
  if (!why.empty()) {
    CLEW_RETURN_IF_ERROR(bundle_->files().RemoveAll(CopyPath()));
    return StoredImage{.info = {}, .why = why};
  }
  return Adopt(image.path, image.build_id);
}

Result<StoredImage> ImageStore::StoreVdso(
    std::span<const std::byte> bytes, const std::vector<std::byte>& build_id) {
  CLEW_RETURN_IF_ERROR(bundle_->Write(kCopyName, bytes));
  return Adopt(std::string(kVdsoPath), build_id);
}

Result<StoredImage> ImageStore::Adopt(const std::string& path,
                                      const std::vector<std::byte>& build_id) {
  StoredImage stored;
  auto described = DescribeImageAs(path, CopyPath());
  if (!described) {
    return std::unexpected(described.error());
  }
  stored.info = std::move(*described);
  stored.info.file.clear();
  if (!build_id.empty() && stored.info.build_id != build_id) {
    stored.why = "the file there now is of another build";
    CLEW_RETURN_IF_ERROR(bundle_->files().RemoveAll(CopyPath()));
    return stored;
  }
  CLEW_RETURN_IF_ERROR(MoveCopy(stored.info));
  return stored;
}

Status ImageStore::MoveCopy(const BundleImage& image) {
  CLEW_ASSIGN_OR_RETURN(name, folder_.NewName(image.path, image.build_id));
  if (!name) {
    return bundle_->files().RemoveAll(CopyPath());
  }
  return bundle_->files().Rename(CopyPath(), bundle_->folder() + "/" + *name);
}

}  // namespace clew::recorder
