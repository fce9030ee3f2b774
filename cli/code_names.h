#ifndef CLEW_CLI_CODE_NAMES_H_
#define CLEW_CLI_CODE_NAMES_H_

#include <string>

#include "common/result.h"
#include "common/units.h"
#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"
#include "follower/bundle/bundle_recording.h"

namespace clew::cli {

// Returns the images of the recorded process. Fails as LoadedImages does.
[[nodiscard]] Result<decoder::LoadedImages> ImagesOf(
    const follower::BundleRecording& recording);

// What people call places in the code of a recorded process. Where the images
// cannot be read, they have no names. Not thread-safe.
class CodeNames {
 public:
  explicit CodeNames(const follower::BundleRecording& recording);
  CodeNames(const CodeNames&) = delete;
  CodeNames& operator=(const CodeNames&) = delete;

  // Returns "main (order.c:12)", "memcpy in libc.so.6 (+0x1234)",
  // "libc.so.6+0x1234", or the address where no image is known there.
  std::string NameOf(TraceeAddr place);

 private:
  const decoder::LoadedImages images_;
  decoder::Unwinder unwinder_;
};

}  // namespace clew::cli

#endif  // CLEW_CLI_CODE_NAMES_H_
