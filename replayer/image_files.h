#ifndef CLEW_REPLAYER_IMAGE_FILES_H_
#define CLEW_REPLAYER_IMAGE_FILES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"

namespace clew::replayer {

// The files of the recorded process by their recorded names, whatever became of
// them on this host. Files are mapped when first asked for and stay mapped as
// long as this object lives. Not thread-safe.
class ImageFiles {
 public:
  // Adds the file that was `recorded_path` and is kept as `stored_path`. Of
  // several for one path the first counts.
  void Add(const std::string& recorded_path, const std::string& stored_path);

  // Returns the contents, borrowed. The path may be another than the kernel
  // reported for the file's mapping. In this order, the file is found that
  //   - was recorded by it, or by /lib for /usr/lib (merged /usr) or the like;
  //   - begins with `start`, what the process has in memory of it (empty: it is
  //     not known), if all that do are copies of each other;
  //   - alone has its base name.
  // Fails with kInvalidArgument if no such file was recorded, and with kSystem
  // if it cannot be read.
  [[nodiscard]] Result<std::span<const std::byte>> Read(
      std::string_view recorded_path, std::span<const std::byte> start = {});

 private:
  using Contents = std::span<const std::byte>;
  const std::string* ByPath(const std::string& recorded_path) const;
  const std::string* ByBaseName(const std::string& recorded_path) const;
  // Returns nullopt if there are none, or several that differ.
  std::optional<Contents> ByStart(Contents start);
  Result<Contents> Map(const std::string& stored_path);

  std::map<std::string, std::string> stored_;           // by recorded path
  std::multimap<std::string, std::string> base_names_;  // to stored path
  std::unordered_map<std::string, MappedFile> mapped_;  // by stored path
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_IMAGE_FILES_H_
