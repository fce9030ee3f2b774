#ifndef CLEW_COMMON_BUILD_ID_H_
#define CLEW_COMMON_BUILD_ID_H_

#include <cstddef>
#include <span>
#include <vector>

namespace clew {

// Most bytes of a build-id. Source: linux/include/linux/buildid.h,
// BUILD_ID_SIZE_MAX.
inline constexpr size_t kBuildIdBytesMax = 20;

// The NT_GNU_BUILD_ID note of an ELF file of 32 or 64 bits; empty if it has
// none, is no such file, or the note is longer than kBuildIdBytesMax (which
// the kernel takes for none, too). Every offset in it is checked.
std::vector<std::byte> BuildIdOf(std::span<const std::byte> elf);

// What names a file in a bundle (Image.build_id): its build-id, or where it has
// none the 8 bytes of its Digest, least significant first.
std::vector<std::byte> ImageIdOf(std::span<const std::byte> file);

}  // namespace clew

#endif  // CLEW_COMMON_BUILD_ID_H_
