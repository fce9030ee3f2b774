#ifndef CLEW_DECODER_HOST_IMAGES_H_
#define CLEW_DECODER_HOST_IMAGES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "decoder/code_map.h"

namespace clew::decoder {

// The NT_GNU_BUILD_ID note of a 64-bit ELF file; empty if it has none or is no
// such file.
std::vector<std::byte> BuildIdOf(std::span<const std::byte> elf);

// Why the code of a process cannot be read from this 64-bit ELF file, for
// people; null if it can. It lacks code if it holds debug information alone, or
// is relocatable: a kernel module, which is not in memory as in its file.
const char* LacksCode(std::span<const std::byte> elf);

// Finds images on this host, for a perf.data without a bundle: the file at the
// recorded path, if the record has a build-id and the file has the same, with
// code. (A file of another build would decode to nonsense.)
ImageResolver HostImages();

}  // namespace clew::decoder

#endif  // CLEW_DECODER_HOST_IMAGES_H_
