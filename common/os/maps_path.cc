#include "common/os/maps_path.h"

#include <sys/stat.h>

namespace clew {
namespace {

constexpr std::string_view kNewline = "\\012";
constexpr std::string_view kDeleted = " (deleted)";

// How sure it is that the file at `path` is the mapped one: 0 is not there. An
// overlay may show another inode than the file below it has.
int Likeness(const std::string& path, uint64_t inode) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return 0;
  }
  return info.st_ino == inode ? 2 : 1;
}

std::string WithNewlines(std::string_view shown) {
  std::string path;
  for (size_t at = shown.find(kNewline); at != std::string_view::npos;
       at = shown.find(kNewline)) {
    path += shown.substr(0, at);
    path += '\n';
    shown.remove_prefix(at + kNewline.size());
  }
  path += shown;
  return path;
}

}  // namespace

std::string PathOfMapping(std::string_view shown, uint64_t inode) {
  std::string as_shown(shown);
  if (shown.find(kNewline) == std::string_view::npos) {
    return as_shown;
  }
  std::string with_newlines = WithNewlines(shown);
  return Likeness(with_newlines, inode) > Likeness(as_shown, inode)
             ? with_newlines
             : as_shown;
}

bool IsDeleted(std::string_view path) { return path.ends_with(kDeleted); }

std::string_view WithoutDeleted(std::string_view path) {
  return path.substr(0, path.size() - (IsDeleted(path) ? kDeleted.size() : 0));
}

}  // namespace clew
