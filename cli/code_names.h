#ifndef CLEW_CLI_CODE_NAMES_H_
#define CLEW_CLI_CODE_NAMES_H_

#include <string>

#include "common/result.h"
#include "common/units.h"
#include "decoder/loaded_images.h"
#include "follower/bundle/bundle_recording.h"

namespace clew::cli {

// Returns the images of the recorded process. Fails as LoadedImages does.
[[nodiscard]] Result<decoder::LoadedImages> ImagesOf(
    const follower::BundleRecording& recording);

// Returns what people call the place: "main (order.c:12)", "memcpy in libc.so.6
// (+0x1234)", "libc.so.6+0x1234", or the address where no image is known there.
std::string NameOfCode(const decoder::LoadedImages& images, TraceeAddr place);

}  // namespace clew::cli

#endif  // CLEW_CLI_CODE_NAMES_H_
