#ifndef CLEW_DECODER_IMAGE_SEARCH_H_
#define CLEW_DECODER_IMAGE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  std::string path;                 // as recorded
  std::vector<std::byte> build_id;  // as recorded; empty: none was
  std::string file;                 // with its code; empty: none
  // `file` has the recorded build-id. False: it was taken by its path, and
  // nothing tells whether it is what ran.
  bool verified = false;
  std::string why;         // if none
  bool of_kernel = false;  // the kernel's own mapping
  bool from_core = false;  // `file` is a copy of memory in the core dump
  std::vector<RefusedFile> refused;
};

// Finds the files of mappings: at the recorded path, or among files and below
// folders that somebody named. Only regular files are opened. A file of debug
// information alone, or a kernel module (in memory it is not as in its file),
// is refused, by name.
//
// Where the recording has a build-id, the file must have the same, whatever its
// name. Where it has none, a file is taken by its path, and is not verified: of
// those that somebody named the one whose path ends most like the recorded one
// (several such that differ are all refused), else that of this host at the
// recorded path. It must have code where the mapping has it.
//
// The vDSO is in no file: copies of it have to be named.
// Not thread-safe.
class ImageSearch {
 public:
  // Most files named and below the folders.
  static constexpr size_t kFilesMax = 200'000;

  // Looks at recorded paths alone.
  ImageSearch() = default;
  // Reads the build-id of every file of `places`, each a file, or a folder with
  // all below. kInvalidArgument: one of them is neither. kLimit: more files
  // than kFilesMax.
  [[nodiscard]] static Result<ImageSearch> Create(
      const std::vector<std::string>& places);

  // A file that holds the vDSO as the recorded process had it at `addr`.
  void AddVdsoOfRun(const std::string& file, TraceeAddr addr);
  // One that holds this host's: it is taken for its build-id only.
  void AddVdsoOfHost(const std::string& file);

  // The same answer for the same path and build-id, but that a file which has
  // no code where one mapping has it is tried for the others, too: of a program
  // that asks for no protection of its stack the kernel maps everything as code
  // (READ_IMPLIES_EXEC). Valid until the next call.
  const ImageMatch& Find(const bundle::MmapRecord& mapping);
  // The answers so far, in the order of the first questions.
  const std::vector<ImageMatch>& matches() const { return matches_; }
  // Of matches(), those with a file that was taken by its path alone.
  size_t CountUnverified() const;
  // Find() for mappings of code. Borrows the search.
  ImageResolver Resolver();

 private:
  struct Known {
    std::string file;
    std::vector<std::byte> build_id;
  };
  struct Vdso {
    std::string file;
    std::optional<TraceeAddr> addr;  // absent: not of the recorded process
  };
  Status AddPlace(const std::string& place);
  Status AddFolder(const std::string& folder);
  Status AddFile(const std::string& file, const std::string& place);
  struct Asked {
    size_t match = 0;  // in matches_
    std::set<uint64_t> offsets;
  };
  void Search(const bundle::MmapRecord& mapping, ImageMatch& match) const;
  void SearchVdso(const bundle::MmapRecord& mapping, ImageMatch& match) const;
  void SearchByBuildId(const bundle::MmapRecord& mapping,
                       ImageMatch& match) const;
  void SearchByPath(const bundle::MmapRecord& mapping, ImageMatch& match) const;
  std::vector<std::string> NearestTo(const std::string& path) const;

  std::vector<Known> known_;
  std::vector<Vdso> vdsos_;
  std::map<std::pair<std::string, std::vector<std::byte>>, Asked> asked_;
  std::vector<ImageMatch> matches_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_IMAGE_SEARCH_H_
