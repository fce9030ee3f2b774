#include "cli/code_names.h"

#include <fmt/format.h>

#include "common/text/path_names.h"

namespace clew::cli {

using decoder::LoadedImages;

Result<LoadedImages> ImagesOf(const follower::BundleRecording& recording) {
  return recording.core
             ? LoadedImages::FromCore(recording.bundle, *recording.core)
             : LoadedImages::FromTrace(recording.bundle);
}

CodeNames::CodeNames(const follower::BundleRecording& recording)
    : images_(ImagesOf(recording).value_or(LoadedImages())),
      unwinder_(images_, nullptr) {}

std::string CodeNames::NameOf(TraceeAddr place) {
  const decoder::LoadedImage* const image = images_.Find(place);
  if (image == nullptr) {
    return fmt::format("{:#x}", place);
  }
  const decoder::CodePlace code = unwinder_.Find(place);
  const std::string name = decoder::ReadableName(code.symbol);
  const std::string module = BaseName(image->path);
  const uint64_t offset = place.as_int() - image->bias;
  if (name.empty()) {
    return fmt::format("{}+{:#x}", module, offset);
  }
  return code.file.empty()
             ? fmt::format("{} in {} (+{:#x})", name, module, offset)
             : fmt::format("{} ({}:{})", name, BaseName(code.file), code.line);
}

}  // namespace clew::cli
