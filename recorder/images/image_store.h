#ifndef CLEW_RECORDER_IMAGES_IMAGE_STORE_H_
#define CLEW_RECORDER_IMAGES_IMAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "bundle/manifest/images.h"
#include "common/result.h"
#include "recorder/images/image_source.h"
#include "recorder/images/perf_capture.h"

namespace clew::recorder {

// What became of an image: it, or why it is not in the bundle.
struct StoredImage {
  bundle::BundleImage info;
  std::string why = {};  // empty: it is
};

// Copies images of strangers into images/ of a bundle. Each is copied first and
// identified by its copy, which nobody else can write, so that the build-id in
// the manifest is that of the bytes in the bundle. Fails as writing does.
class ImageStore {
 public:
  // Makes images/. `bundle` must outlive it.
  [[nodiscard]] static Result<ImageStore> Create(bundle::BundleWriter& bundle);

  // Copies `image` from `source`, at most `bytes_max` bytes. Not stored: it is
  // gone, was cut or changed meanwhile, or has another build-id than the image
  // (empty: not known). The same build under the same name is there once.
  [[nodiscard]] Result<StoredImage> Store(ImageSource& source,
                                          const MappedImage& image,
                                          uint64_t bytes_max);
  // A vDSO, which is a whole ELF file; see DescribeImage.
  [[nodiscard]] Result<StoredImage> StoreVdso(
      std::span<const std::byte> bytes, const std::vector<std::byte>& build_id);

 private:
  ImageStore(bundle::BundleWriter& bundle, bundle::ImageFolder folder)
      : bundle_(&bundle), folder_(std::move(folder)) {}
  std::string CopyPath() const;
  Result<StoredImage> Adopt(const std::string& path,
                            const std::vector<std::byte>& build_id);
  Status MoveCopy(const bundle::BundleImage& image);

  bundle::BundleWriter* bundle_;
  bundle::ImageFolder folder_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_IMAGE_STORE_H_
