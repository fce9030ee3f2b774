#ifndef CLEW_COMMON_TEXT_PATH_NAMES_H_
#define CLEW_COMMON_TEXT_PATH_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace clew {

// What the kernel and perf call the mapping of the vDSO.
inline constexpr std::string_view kVdsoPath = "[vdso]";

// Of a file's name on Linux: NAME_MAX, linux/limits.h.
inline constexpr size_t kFileNameBytesMax = 255;

// What is behind the last slash: "" for "/usr/", the whole path without one.
std::string BaseName(std::string_view path);

// The folder that has `path` in it: "." for "a", "/" for "/a". REQUIRES: no
// slash at the end.
std::string ParentFolder(std::string_view path);

// Names of images' files in a bundle, images/<build-id>/<name>: 1 to
// kFileNameBytesMax bytes of [A-Za-z0-9._+@=,~-], neither "." nor "..".
bool IsImageFileName(std::string_view name);

// The name of the file of an image that was mapped as `path`: its base name,
// cut after so many bytes, with '_' for each byte that such a name has not.
// "[vdso]" is "_vdso_". Empty, "." or ".." where the base name is.
std::string ImageFileName(std::string_view path);

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_PATH_NAMES_H_
