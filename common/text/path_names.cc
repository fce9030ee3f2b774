#include "common/text/path_names.h"

#include <algorithm>

namespace clew {
namespace {

constexpr std::string_view kNameBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@=,~-";

}  // namespace

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string ParentFolder(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) {
    return ".";
  }
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

bool IsImageFileName(std::string_view name) {
  return !name.empty() && name.size() <= kFileNameBytesMax && name != "." &&
         name != ".." && name.find_first_not_of(kNameBytes) == name.npos;
}

std::string ImageFileName(std::string_view path) {
  std::string name = BaseName(path).substr(0, kFileNameBytesMax);
  std::ranges::replace_if(
      name, [](char byte) { return !kNameBytes.contains(byte); }, '_');
  return name;
}

}  // namespace clew
