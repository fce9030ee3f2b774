#ifndef CLEW_RECORDER_IMAGE_STORE_H_
#define CLEW_RECORDER_IMAGE_STORE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "common/result.h"
#include "recorder/image_source.h"
#include "recorder/images.h"
#include "recorder/perf_capture.h"

namespace clew::recorder {

// What became of an image: it, or why it is not in the bundle.
struct StoredImage {
  ImageInfo info;
  std::string why = {};  // empty: it is
};

// Images of strangers, into images/ of a bundle. Each is copied first, and what
// it is is told from the copy, which nobody else can write: so the build-id in
// the manifest is that of the bytes in the bundle. Errors are those of writing.
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
  // The vDSO of this process; see DescribeImage.
  [[nodiscard]] Result<StoredImage> StoreVdso(
      const std::vector<uint8_t>& build_id);

 private:
  explicit ImageStore(bundle::BundleWriter& bundle) : bundle_(&bundle) {}
  std::string CopyPath() const;
  Result<StoredImage> Adopt(const std::string& path,
                            const std::vector<uint8_t>& build_id);
  Status MoveCopy(const ImageInfo& image);

  bundle::BundleWriter* bundle_;
  std::set<std::string> made_;  // folders and files below the bundle's
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGE_STORE_H_
