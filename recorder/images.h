#ifndef CLEW_RECORDER_IMAGES_H_
#define CLEW_RECORDER_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "common/result.h"

namespace clew::recorder {

// A file that the program had mapped executable.
struct ImageInfo {
  std::string path;
  std::string source = {};        // where it is read; empty: at `path`
  std::vector<uint8_t> build_id;  // see ImageIdOf
  bool has_build_id = false;
  uint64_t size_bytes = 0;
};

// As those of common/build_id.h.
std::vector<uint8_t> BuildIdOf(std::span<const std::byte> file);
std::vector<uint8_t> ImageIdOf(std::span<const std::byte> file);

// Describes the file at `source` as the one that was mapped by the name `path`.
[[nodiscard]] Result<ImageInfo> DescribeImageAs(const std::string& path,
                                                const std::string& source);

// Describes the file at `path`, which must be a regular one; for kVdsoPath the
// vDSO of this process, which is that of every other one of 64 bits.
[[nodiscard]] Result<ImageInfo> DescribeImage(const std::string& path);

// Makes images/ and copies each file to images/<build-id in hex>/ under
// ImageFileName; what two of them would put there is copied once. kSystem also
// if a file is no longer the one that was described.
[[nodiscard]] Status CopyImages(bundle::BundleWriter& bundle,
                                const std::vector<ImageInfo>& images);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_H_
