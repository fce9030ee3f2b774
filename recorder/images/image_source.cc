#include "recorder/images/image_source.h"

#include <memory>
#include <utility>

namespace clew::recorder {
namespace {

Result<std::string> Copy(FileSystem& files, const ImageFile& file,
                         uint64_t bytes_max, const std::string& to) {
  if (file.size_bytes() > bytes_max) {
    return std::string("it grew");
  }
  CLEW_ASSIGN_OR_RETURN(copy, files.Create(to));
  CLEW_ASSIGN_OR_RETURN(whole, file.CopyTo(*copy));
  if (!whole) {
    return std::string("it was cut while it was copied");
  }
  CLEW_RETURN_IF_ERROR(copy->Sync());
  return std::string();
}

}  // namespace

// Calls `use` with the file, or with the error of who looks for it.
template <class Use>
auto FilesHere::WithFile(const MappedImage& image, const Use& use) const {
  if (const ImageFile* file = held_ == nullptr
                                  ? nullptr
                                  : held_->Find(image.path, image.build_id)) {
    return use(file, Error());
  }
  const auto file = ImageFile::AtPath(image.path, rights_);
  return file ? use(&*file, Error()) : use(nullptr, file.error());
}

Result<uint64_t> FilesHere::SizeOf(const MappedImage& image) {
  return WithFile(
      image, [](const ImageFile* file, const Error& error) -> Result<uint64_t> {
        if (file == nullptr) {
          return std::unexpected(error);
        }
        return file->size_bytes();
      });
}

Result<std::string> FilesHere::CopyTo(const MappedImage& image,
                                      uint64_t bytes_max,
                                      const std::string& to) {
  return WithFile(
      image,
      [&](const ImageFile* file, const Error& error) -> Result<std::string> {
        if (file == nullptr) {
          return error.message;
        }
        return Copy(files_, *file, bytes_max, to);
      });
}

}  // namespace clew::recorder
