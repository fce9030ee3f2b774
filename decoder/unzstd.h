#ifndef CLEW_DECODER_UNZSTD_H_
#define CLEW_DECODER_UNZSTD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::decoder {

// Whether `bytes` begin a zstd frame (RFC 8878, "Magic_Number").
bool IsZstd(std::span<const std::byte> bytes);

// Decompresses zstd frames. kCorruptInput: they are damaged or cut off.
// kLimit: more than `size_max` bytes come out.
[[nodiscard]] Result<std::vector<std::byte>> Unzstd(
    std::span<const std::byte> bytes, const std::string& name,
    uint64_t size_max);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_UNZSTD_H_
