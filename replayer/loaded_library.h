#ifndef CLEW_REPLAYER_LOADED_LIBRARY_H_
#define CLEW_REPLAYER_LOADED_LIBRARY_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "replayer/target.h"

namespace clew::replayer {

// What is read of a library: its ELF header, program headers and build-id are
// within this.
inline constexpr size_t kLibraryStartBytes = 4096;

// Returns the bytes, at most kLibraryStartBytes, with which the library that
// ld.so knows by `name` begins in memory now. ld.so keeps the path that it
// opened, often a link (/lib/x86_64-linux-gnu/libstdc++.so.6), while a mapping
// is recorded with the file's own path; the contents tell which file that is.
// Returns none if ld.so has no such library (yet), or the program has no ld.so.
// Sources: System V ABI, "Dynamic Section", DT_DEBUG; glibc's link.h, struct
// r_debug and struct link_map.
std::vector<std::byte> LoadedLibraryStart(const ReplayTarget& target,
                                          std::string_view name);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_LOADED_LIBRARY_H_
