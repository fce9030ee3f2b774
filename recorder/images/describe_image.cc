#include "recorder/images/describe_image.h"

#include <span>

#include "common/build_id.h"
#include "common/os/file.h"
#include "common/text/path_names.h"
#include "recorder/images/vdso.h"

namespace clew::recorder {
namespace {

using bundle::BundleImage;

BundleImage Describe(const std::string& path, std::span<const std::byte> bytes,
                     const std::string& file) {
  return {.path = path,
          .build_id = ImageIdOf(bytes),
          .has_build_id = !BuildIdOf(bytes).empty(),
          .size_bytes = bytes.size(),
          .file = file};
}

}  // namespace

Result<BundleImage> DescribeImageAs(const std::string& path,
                                    const std::string& file) {
  CLEW_ASSIGN_OR_RETURN(mapped, MappedFile::Open(file));
  return Describe(path, mapped.bytes(), file);
}

Result<BundleImage> DescribeImage(const std::string& path) {
  if (path != kVdsoPath) {
    return DescribeImageAs(path, path);
  }
  if (OwnVdso().empty()) {
    return Unsupported("this kernel has no vDSO for our own process");
  }
  return Describe(path, OwnVdso(), "");
}

}  // namespace clew::recorder
