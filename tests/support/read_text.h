#ifndef CLEW_TESTS_SUPPORT_READ_TEXT_H_
#define CLEW_TESTS_SUPPORT_READ_TEXT_H_

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace clew::test {

// Returns the bytes of a file; none where it cannot be read, as one in /proc of
// a process that ends meanwhile.
inline std::string ReadText(const std::filesystem::path& path) {
  std::ostringstream text;  // iterators would throw
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_READ_TEXT_H_
