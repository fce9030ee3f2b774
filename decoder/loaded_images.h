#ifndef CLEW_DECODER_LOADED_IMAGES_H_
#define CLEW_DECODER_LOADED_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/core_dump/core_dump.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::decoder {

// A program or library where the process had it.
struct LoadedImage {
  std::string path = {};      // at recording time
  std::string build_id = {};  // hexadecimal; empty: not known
  std::string file = {};      // in the bundle; empty: not there
  std::string why = {};       // if it is not there
  // What it covers, [begin, end). Of an image that is not there, one mapping.
  TraceeAddr begin;
  TraceeAddr end;
  // Address in the process - address in the ELF file. Of an image that is not
  // there: address - offset in the file, as no header tells more.
  uint64_t bias = 0;
};

// The images of a bundle where they were in memory, ordered by address and
// without overlaps. A file is taken from the bundle by build-id: that which the
// memory of the process has, or else that which the manifest has for its path;
// a file with another one is refused. Nothing is looked for outside the bundle.
class LoadedImages {
 public:
  // Most images, and program headers of one.
  static constexpr size_t kImagesMax = 4096;
  static constexpr size_t kHeadersMax = 1024;

  // Of the core dump's list of files. Where it has none, as FromTrace.
  [[nodiscard]] static Result<LoadedImages> FromCore(
      const bundle::Bundle& bundle, const bundle::CoreDump& core);
  // Of the mappings in perf.data, the last one at each place. kCorruptInput.
  [[nodiscard]] static Result<LoadedImages> FromTrace(
      const bundle::Bundle& bundle);

  const std::vector<LoadedImage>& all() const { return images_; }
  // Null if no file was mapped there.
  const LoadedImage* Find(TraceeAddr addr) const;

 private:
  class Builder;
  std::vector<LoadedImage> images_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_LOADED_IMAGES_H_
