#ifndef CLEW_TESTS_DECODER_SHARED_DATA_H_
#define CLEW_TESTS_DECODER_SHARED_DATA_H_

#include <sys/stat.h>

#include <cstdlib>
#include <string>

namespace clew::decoder {

// The path of a file of test data that is not in the repository: below
// $CLEW_SHARED_DATA, else beside the source tree. Empty if it is not there.
inline std::string SharedDataFile(const std::string& name) {
  const char* given = std::getenv("CLEW_SHARED_DATA");
  const char* source = std::getenv("CLEW_SOURCE_DIR");
  std::string path;
  if (given != nullptr) {
    path = std::string(given) + "/" + name;
  } else if (source != nullptr) {
    path = std::string(source) + "/../shared/data/" + name;
  }
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? path : std::string();
}

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_SHARED_DATA_H_
