#ifndef CLEW_RECORDER_NATIVE_MAPPED_FILES_H_
#define CLEW_RECORDER_NATIVE_MAPPED_FILES_H_

#include <fcntl.h>
#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>

#include "common/os/fd.h"

namespace clew::recorder {

// The files of which a program maps code, held open: who runs it may remove or
// replace them as soon as it has ended (`go run`, a failing make), before they
// are in the bundle. At most kFilesMax, the first of each path.
class MappedFiles {
 public:
  static constexpr size_t kFilesMax = 256;

  void Add(const std::string& path) {
    if (files_.size() < kFilesMax && !files_.contains(path)) {
      files_.emplace(path, Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    }
  }
  void Clear() { files_.clear(); }
  // Returns by which path what was mapped as `path` is to be read.
  std::string PathOf(const std::string& path) const {
    const auto held = files_.find(path);
    return held != files_.end() && held->second.is_open()
               ? fmt::format("/proc/self/fd/{}", held->second.get())
               : path;
  }

 private:
  std::map<std::string, Fd> files_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_MAPPED_FILES_H_
