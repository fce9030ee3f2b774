#ifndef CLEW_COMMON_OS_PATCH_H_
#define CLEW_COMMON_OS_PATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"

namespace clew {

// Bytes of a file that are to be others.
struct Patch {
  uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

// Appends `bytes`, which begin at `offset` of a file, with those of `patches`
// that lie there. REQUIRES: patches are ordered and do not cross its ends.
[[nodiscard]] Status AppendPatched(WritableFile& to,
                                   std::span<const std::byte> bytes,
                                   uint64_t offset,
                                   std::span<const Patch> patches);

}  // namespace clew

#endif  // CLEW_COMMON_OS_PATCH_H_
