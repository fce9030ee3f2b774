#ifndef CLEW_TESTS_DECODER_SHARED_DATA_H_
#define CLEW_TESTS_DECODER_SHARED_DATA_H_

#include <sys/stat.h>

#include <cstdlib>
#include <string>

namespace clew::decoder {

// The path of a file of test data that is not in the repository: below
// $CLEW_SHARED_DATA. Empty if it is not there.
inline std::string SharedDataFile(const std::string& name) {
  const char* folder = std::getenv("CLEW_SHARED_DATA");
  if (folder == nullptr) {
    return {};
  }
  std::string path = std::string(folder) + "/" + name;
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? path : std::string();
}

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_SHARED_DATA_H_
