#ifndef CLEW_RECORDER_SOFTWARE_GENERATED_IMAGE_H_
#define CLEW_RECORDER_SOFTWARE_GENERATED_IMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/units.h"

namespace clew::recorder {

// What the mappings of code that the program made are called.
inline constexpr std::string_view kGeneratedPath = "[generated]";

// Where bytes of the generated image were, from `time` on.
struct GeneratedMapping {
  TscTicks time;
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
};

// Code that the program made, as a file and its mappings in order of time.
struct GeneratedImage {
  std::vector<std::byte> bytes;
  std::vector<GeneratedMapping> mappings;
};

// Makes it of the plugin's records (recorder/qemu/raw_code.h) in the file at
// `path`; where there is none it is empty. Code that was there from the start
// becomes few mappings: bytes between that never ran are INT3. kCorruptInput.
[[nodiscard]] Result<GeneratedImage> MakeGeneratedImage(
    const std::string& path);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_GENERATED_IMAGE_H_
