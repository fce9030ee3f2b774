#include "common/os/patch.h"

#include <algorithm>

#include "common/check.h"

namespace clew {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

}  // namespace

Status AppendPatched(WritableFile& to, std::span<const std::byte> bytes,
                     uint64_t offset, std::span<const Patch> patches) {
  const uint64_t end = offset + bytes.size();
  uint64_t at = offset;
  const auto plain = [&](uint64_t until) -> Status {
    while (at < until) {
      const auto count = std::min<uint64_t>(until - at, kWriteBytes);
      CLEW_RETURN_IF_ERROR(to.Append(bytes.subspan(at - offset, count)));
      at += count;
    }
    return {};
  };
  const auto first =
      std::ranges::lower_bound(patches, offset, {}, &Patch::offset);
  for (const Patch& patch : std::span(first, patches.end())) {
    if (patch.offset >= end) {
      break;
    }
    CLEW_CHECK(patch.offset >= at && patch.bytes.size() <= end - patch.offset,
               "patch at {:#x} overlaps", patch.offset);
    CLEW_RETURN_IF_ERROR(plain(patch.offset));
    CLEW_RETURN_IF_ERROR(to.Append(patch.bytes));
    at += patch.bytes.size();
  }
  return plain(end);
}

}  // namespace clew
