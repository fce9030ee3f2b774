#ifndef CLEW_TESTS_SUPPORT_WRITE_TEXT_H_
#define CLEW_TESTS_SUPPORT_WRITE_TEXT_H_

#include <filesystem>
#include <fstream>
#include <string_view>

namespace clew::test {

// Makes a file of these bytes, in place of what was there, and the folders that
// it is in.
inline void WriteText(const std::filesystem::path& path,
                      std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_WRITE_TEXT_H_
