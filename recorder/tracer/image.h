#ifndef CLEW_RECORDER_TRACER_IMAGE_H_
#define CLEW_RECORDER_TRACER_IMAGE_H_

#include <cstdint>
#include <span>

namespace clew::tracer {

// The code of the runtime (runtime/image.ld), which begins with its first
// instruction.
std::span<const uint8_t> RuntimeImage();

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_IMAGE_H_
