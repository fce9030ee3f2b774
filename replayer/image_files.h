#ifndef CLEW_REPLAYER_IMAGE_FILES_H_
#define CLEW_REPLAYER_IMAGE_FILES_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/file.h"
#include "common/result.h"

namespace clew::replayer {

// The files of the recorded process by their recorded names, whatever became of
// them on this host. Files are mapped when first asked for and stay mapped as
// long as this object lives. Not thread-safe.
class ImageFiles {
 public:
  // The file that was `recorded_path` is kept as `stored_path`. The first of
  // several for one path counts.
  void Add(std::string recorded_path, std::string stored_path);

  // Contents, borrowed. A path that was not recorded as such is found too if it
  // differs only by /lib against /usr/lib (merged /usr) or the like, or has the
  // base name of exactly one recorded file: ld.so opens a library by another
  // path than the kernel reports for its mapping.
  // kInvalidArgument: no such file was recorded. kSystem: it cannot be read.
  [[nodiscard]] Result<std::span<const std::byte>> Read(
      std::string_view recorded_path);

 private:
  const std::string* StoredPath(const std::string& recorded_path) const;

  std::map<std::string, std::string> stored_;           // by recorded path
  std::multimap<std::string, std::string> base_names_;  // to stored path
  std::unordered_map<std::string, MappedFile> mapped_;  // by stored path
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_IMAGE_FILES_H_
