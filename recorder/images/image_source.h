#ifndef CLEW_RECORDER_IMAGES_IMAGE_SOURCE_H_
#define CLEW_RECORDER_IMAGES_IMAGE_SOURCE_H_

#include <cstdint>
#include <string>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/images/image_file.h"
#include "recorder/images/perf_capture.h"

namespace clew::recorder {

// Where the files of mapped images are read from. Not thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // An error: it cannot be had, and why.
  [[nodiscard]] virtual Result<uint64_t> SizeOf(const MappedImage& image) = 0;
  // Copies it to the file `to`, which is made, and syncs that. Returns why it
  // was not copied, empty: it was; the file may be there in either case. An
  // error is one of writing.
  [[nodiscard]] virtual Result<std::string> CopyTo(const MappedImage& image,
                                                   uint64_t bytes_max,
                                                   const std::string& to) = 0;
};

// A held file of that path and build-id, or else the file at the path.
class FilesHere final : public ImageSource {
 public:
  // Both must outlive it; `held` may be nullptr, and grow meanwhile.
  FilesHere(FileSystem& files, const HeldImages* held, ImageRights rights)
      : files_(files), held_(held), rights_(rights) {}
  Result<uint64_t> SizeOf(const MappedImage& image) override;
  Result<std::string> CopyTo(const MappedImage& image, uint64_t bytes_max,
                             const std::string& to) override;

 private:
  template <class Use>
  auto WithFile(const MappedImage& image, const Use& use) const;

  FileSystem& files_;
  const HeldImages* held_;
  ImageRights rights_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_IMAGE_SOURCE_H_
