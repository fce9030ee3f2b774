#include "recorder/image_store.h"

#include "common/file.h"
#include "common/hex.h"
#include "common/path_names.h"
#include "recorder/vdso.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;

// No build-id in hexadecimal, so in nobody's way.
constexpr const char* kCopyName = "images/copy";

}  // namespace

Result<ImageStore> ImageStore::Create(BundleWriter& bundle) {
  CLEW_RETURN_IF_ERROR(bundle.MakeFolder("images"));
  return ImageStore(bundle);
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
    const std::vector<uint8_t>& build_id) {
  CLEW_RETURN_IF_ERROR(bundle_->Write(kCopyName, OwnVdso()));
  return Adopt(std::string(kVdsoPath), build_id);
}

Result<StoredImage> ImageStore::Adopt(const std::string& path,
                                      const std::vector<uint8_t>& build_id) {
  StoredImage stored;
  auto described = DescribeImageAs(path, CopyPath());
  if (!described) {
    return std::unexpected(described.error());
  }
  stored.info = std::move(*described);
  stored.info.source.clear();
  if (!build_id.empty() && stored.info.build_id != build_id) {
    stored.why = "the file there now is of another build";
    CLEW_RETURN_IF_ERROR(bundle_->files().RemoveAll(CopyPath()));
    return stored;
  }
  CLEW_RETURN_IF_ERROR(MoveCopy(stored.info));
  return stored;
}

Status ImageStore::MoveCopy(const ImageInfo& image) {
  const std::string folder = "images/" + ToHex(image.build_id);
  const std::string name = folder + "/" + ImageFileName(image.path);
  if (!made_.insert(name).second) {
    return bundle_->files().RemoveAll(CopyPath());
  }
  if (made_.insert(folder).second) {
    CLEW_RETURN_IF_ERROR(bundle_->MakeFolder(folder));
  }
  return bundle_->files().Rename(CopyPath(), bundle_->folder() + "/" + name);
}

}  // namespace clew::recorder
