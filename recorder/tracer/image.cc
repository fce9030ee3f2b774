#include "recorder/tracer/image.h"

// In image.S.
extern "C" {
extern const uint8_t clew_tracer_image[];
extern const uint8_t clew_tracer_image_end[];
}

namespace clew::tracer {

std::span<const uint8_t> RuntimeImage() {
  return {clew_tracer_image, clew_tracer_image_end};
}

}  // namespace clew::tracer
