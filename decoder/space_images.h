#ifndef CLEW_DECODER_SPACE_IMAGES_H_
#define CLEW_DECODER_SPACE_IMAGES_H_

#include <cstdint>
#include <map>
#include <memory>

#include "common/units.h"
#include "decoder/address_spaces.h"
#include "decoder/pt/flow.h"

namespace clew::decoder {

// The code of one space as one core sees it.
struct SpaceImage {
  SpaceImage(CodeMap of, SectionCache& cache)
      : code(std::move(of)), image(cache), walker(image) {}

  SpaceId space = kSpaceUnknown;
  CodeMap code;
  CodeImage image;
  InstructionWalker walker;
  size_t replaced = 0;     // replacing mappings that the image has
  uint64_t last_used = 0;  // by the count of uses
};

// The images of a core, made when first asked for. At most `images_max` are
// kept, and those longest not used are made anew. Not thread-safe.
class SpaceImages {
 public:
  // `spaces` and `cache` must outlive the object.
  SpaceImages(const AddressSpaces& spaces, SectionCache& cache,
              size_t images_max);

  // The core runs code of `space` from `time` on, until the next call; the
  // image stays so long.
  SpaceImage& Enter(SpaceId space, TscTicks time);
  // Any space's, good until the next call; what is new has what was mapped
  // until `time`.
  SpaceImage& Find(SpaceId space, TscTicks time);
  // What was entered last. REQUIRES: something was.
  SpaceImage& current() { return *current_; }

 private:
  SpaceImage& Make(SpaceId space, TscTicks time);
  void MakeRoom();

  const AddressSpaces& spaces_;
  SectionCache& cache_;
  size_t images_max_;
  std::map<SpaceId, std::unique_ptr<SpaceImage>> images_;
  SpaceImage* current_ = nullptr;
  SpaceImage* found_ = nullptr;
  uint64_t uses_ = 0;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_SPACE_IMAGES_H_
