#ifndef CLEW_DECODER_IMAGE_SEARCH_H_
#define CLEW_DECODER_IMAGE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "decoder/code_map.h"

namespace clew::decoder {

// A file that was considered and is not the one.
struct RefusedFile {
  std::string file;
  std::string why;
};

// A mapped file and where it is now.
struct ImageMatch {
  std::string path;  // as recorded
  std::vector<std::byte> build_id;
  std::string file;  // of the same build-id, with code; empty: none
  std::string why;   // if none
  std::vector<RefusedFile> refused;
};

// Finds the files of mappings by build-id: at the recorded path, or anywhere
// below folders that somebody named. Only regular files are opened. A file of
// another build, of debug information alone, or a kernel module (in memory it
// is not as in its file) is refused, by name. Nothing is taken on its name
// alone: without a build-id in the recording there is no match.
// Not thread-safe.
class ImageSearch {
 public:
  // Most files below the folders.
  static constexpr size_t kFilesMax = 200'000;

  // Reads the build-id of every file below `folders`. kInvalidArgument: one of
  // them is no folder. kLimit: more files than kFilesMax.
  [[nodiscard]] static Result<ImageSearch> Create(
      const std::vector<std::string>& folders);

  // The same answer for the same path and build-id. Valid until the next call.
  const ImageMatch& Find(const MmapRecord& mapping);
  // The answers so far, in the order of the first questions.
  const std::vector<ImageMatch>& matches() const { return matches_; }

 private:
  struct Known {
    std::string file;
    std::vector<std::byte> build_id;
  };
  ImageSearch() = default;
  Status AddFolder(const std::string& folder);
  void Search(ImageMatch& match) const;
  void Consider(const std::string& file, ImageMatch& match) const;

  std::vector<Known> known_;
  std::map<std::pair<std::string, std::vector<std::byte>>, size_t> asked_;
  std::vector<ImageMatch> matches_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_IMAGE_SEARCH_H_
