#ifndef CLEW_BUNDLE_MANIFEST_IMAGES_H_
#define CLEW_BUNDLE_MANIFEST_IMAGES_H_

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "bundle/manifest/manifest.h"
#include "common/result.h"

namespace clew::bundle {

// images/ of a bundle being written: images/<build-id in hex>/<name>, the name
// as of ImageFileName.
class ImageFolder {
 public:
  // Makes images/. `bundle` must outlive it.
  [[nodiscard]] static Result<ImageFolder> Create(BundleWriter& bundle);

  // Returns the name below the bundle's folder for an image that was mapped as
  // `path`, and makes the folder that it is in; nullopt if the same build has
  // been given the same name before.
  [[nodiscard]] Result<std::optional<std::string>> NewName(
      const std::string& path, std::span<const std::byte> build_id);

 private:
  explicit ImageFolder(BundleWriter& bundle) : bundle_(&bundle) {}

  BundleWriter* bundle_;
  std::set<std::string> made_;  // folders and files below the bundle's
};

// Makes images/ and copies there what `images` say the file of. An image of
// kVdsoPath without a file is `vdso`, unless that is empty. Fails with kSystem
// also if a file is no longer of the build that its image says.
[[nodiscard]] Status CopyImages(BundleWriter& bundle,
                                const std::vector<BundleImage>& images,
                                std::span<const std::byte> vdso);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_IMAGES_H_
