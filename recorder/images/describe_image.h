#ifndef CLEW_RECORDER_IMAGES_DESCRIBE_IMAGE_H_
#define CLEW_RECORDER_IMAGES_DESCRIBE_IMAGE_H_

#include <string>

#include "bundle/manifest/manifest.h"
#include "common/result.h"

namespace clew::recorder {

// Describes the file at `file`, which was mapped executable as `path`. Fails
// with kInvalidArgument if it is not a regular file.
[[nodiscard]] Result<bundle::BundleImage> DescribeImageAs(
    const std::string& path, const std::string& file);

// The same of the file that is at `path`; for kVdsoPath of the vDSO of this
// process, which is that of every other one of 64 bits.
[[nodiscard]] Result<bundle::BundleImage> DescribeImage(
    const std::string& path);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_DESCRIBE_IMAGE_H_
