#ifndef CLEW_DECODER_CODE_MAP_H_
#define CLEW_DECODER_CODE_MAP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bundle/perf_data/records.h"
#include "common/result.h"
#include "common/units.h"
#include "decoder/pt/flow.h"

namespace clew::decoder {

// Finds the file that holds the code of a mapping: the path of a readable file,
// or empty.
using ImageResolver = std::function<std::string(const bundle::MmapRecord&)>;

// A mapping of code, from `time` on.
struct CodeMapping {
  bundle::MmapRecord mapping;
  TscTicks time;
  std::string file;  // that holds the code; empty: none
};

// What code one process had where, over time.
//
// Most mappings stay: these are in every image from the start, so that it does
// not matter how exactly a core's time is known. One that replaces another
// comes into an image when its core's time has passed it.
class CodeMap {
 public:
  // Mappings in order of time; they must outlive the map.
  void Add(const CodeMapping& mapping);

  // Puts into `image`, which must be new, what is mapped from the start. A
  // mapping that its file does not have has no code; Describe says why.
  void MapInitial(CodeImage& image);
  // Puts into `image` the replacements up to `time`; `next` is how many it has
  // already.
  void MapUntil(TscTicks time, CodeImage& image, size_t& next);
  // The mapping that holds `addr`, for messages: "libc.so.6 (build-id 12ab,
  // no image in the bundle)"; "no file mapped" if there is none.
  std::string Describe(TraceeAddr addr) const;
  // What is mapped from the start.
  const std::vector<const CodeMapping*>& initial() const { return initial_; }
  // Where no file was found, each path and build-id once.
  std::vector<bundle::MmapRecord> Missing() const;

 private:
  bool Overlaps(const bundle::MmapRecord& mapping) const;
  void MapOne(const CodeMapping& of, CodeImage& image);

  std::vector<const CodeMapping*> initial_;
  std::vector<const CodeMapping*> replacing_;
  std::map<const CodeMapping*, std::string> faults_;  // why not mapped
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_CODE_MAP_H_
