#ifndef CLEW_COMMON_BUILD_ID_H_
#define CLEW_COMMON_BUILD_ID_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace clew {

// Most bytes of a build-id. Source: linux/include/linux/buildid.h,
// BUILD_ID_SIZE_MAX.
inline constexpr size_t kBuildIdBytesMax = 20;

// Most bytes of an Image.build_id that readers of bundles take. What is written
// has kBuildIdBytesMax at most; a later clew may know longer ones.
inline constexpr size_t kImageIdBytesMax = 64;

// Most bytes of program headers, and of all notes together, that are looked at:
// a file is whatever its author made of it. Linux runs nothing with more
// headers (linux/fs/binfmt_elf.c, load_elf_phdrs), and notes that are loaded
// are some hundred bytes.
inline constexpr size_t kHeaderBytesMax = 64 * 1024;
inline constexpr size_t kNoteBytesMax = 64 * 1024;

// Reads the bytes from an offset on; false if not all of them are there.
using ReadBytesAt =
    std::function<bool(uint64_t offset, std::span<std::byte> out)>;

// Returns the NT_GNU_BUILD_ID note of an ELF file of 32 or 64 bits; empty if it
// has none, is not such a file, or the note is longer than kBuildIdBytesMax
// (the kernel ignores such a note, too). Every offset in it is checked.
std::vector<std::byte> BuildIdOf(std::span<const std::byte> elf);
// The same of a file of `size_bytes` that `read` reads, and that may change
// meanwhile.
std::vector<std::byte> BuildIdOf(const ReadBytesAt& read, uint64_t size_bytes);

// Most bytes of a package note that are taken.
inline constexpr size_t kPackageNoteBytesMax = 4096;
// The JSON text of an ELF file's note about the package that it is of, as it
// stands there; empty as of BuildIdOf, and of one longer than
// kPackageNoteBytesMax. Linkers write it (ld --package-metadata).
//
// Source: systemd, "Package Metadata for Executable Files": type 0xcafe1a7e,
// owner "FDO".
std::string PackageNoteOf(std::span<const std::byte> elf);

// What names a file in a bundle (Image.build_id): its build-id, or where it has
// none the 8 bytes of its Digest, least significant first.
std::vector<std::byte> ImageIdOf(std::span<const std::byte> file);

}  // namespace clew

#endif  // CLEW_COMMON_BUILD_ID_H_
