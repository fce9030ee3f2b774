#include "cli/image_guide.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "common/text/path_names.h"

namespace clew::cli {

using decoder::CodePlace;
using solver::Owner;

Owner OwnerOfImage(const std::string& path) {
  constexpr std::array<std::string_view, 2> kLoaders = {"ld-linux", "ld-musl"};
  constexpr std::array<std::string_view, 11> kLibraries = {
      "libc.so",     "libc-",    "libpthread", "libstdc++", "libc++", "libm.so",
      "libgcc_s.so", "libdl.so", "librt.so",   "[vdso]",    "libm-"};
  const std::string name = BaseName(path);
  const auto begins = [&](std::string_view with) {
    return name.starts_with(with);
  };
  if (std::ranges::any_of(kLoaders, begins)) {
    return Owner::kLoader;
  }
  return std::ranges::any_of(kLibraries, begins) ? Owner::kLibrary
                                                 : Owner::kProgram;
}

Owner ImageGuide::OwnerOfData(TraceeAddr addr) {
  const decoder::LoadedImage* const image = images_.Find(addr);
  return image == nullptr ? Owner::kNobody : OwnerOfImage(image->path);
}

solver::CodeFacts ImageGuide::At(TraceeAddr ip) {
  solver::CodeFacts facts = {.owner = OwnerOfData(ip)};
  if (facts.owner == Owner::kLibrary) {
    facts.lock = FunctionAt(ip).lock;
  } else if (facts.owner == Owner::kProgram && unwinder_.HasLines(ip)) {
    const Function& function = FunctionAt(ip);
    if (!function.has_lines) {
      facts = {.owner = Owner::kLibrary, .lock = function.lock};
    }
  }
  return facts;
}

const ImageGuide::Function& ImageGuide::FunctionAt(TraceeAddr ip) {
  const auto after = functions_.upper_bound(ip.as_int());
  if (after != functions_.begin()) {
    const auto& [begin, function] = *std::prev(after);
    if (ip.as_int() - begin < function.size_bytes) {
      return function;
    }
  }
  const CodePlace place = unwinder_.Find(ip);
  const bool has_symbol = place.symbol_bytes != 0;
  const uint64_t offset = has_symbol ? place.symbol_offset : place.row_offset;
  const uint64_t bytes = has_symbol ? place.symbol_bytes : place.row_bytes;
  Function& function = functions_[ip.as_int() - offset];
  function = {.size_bytes = std::max(bytes, offset + 1),
              .lock = solver::LockCallNamed(place.symbol),
              .has_lines = !place.file.empty()};
  return function;
}

}  // namespace clew::cli
