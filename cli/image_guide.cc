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
    facts.lock = LockAt(ip);
  } else if (facts.owner == Owner::kProgram && unwinder_.HasLines(ip)) {
    const CodePlace place = unwinder_.Find(ip);
    if (place.file.empty()) {
      facts = {.owner = Owner::kLibrary,
               .lock = solver::LockCallNamed(place.symbol)};
    }
  }
  return facts;
}

solver::LockCall ImageGuide::LockAt(TraceeAddr ip) {
  const auto after = functions_.upper_bound(ip.as_int());
  if (after != functions_.begin()) {
    const auto& [begin, function] = *std::prev(after);
    if (ip.as_int() - begin < function.size_bytes) {
      return function.lock;
    }
  }
  const CodePlace place = unwinder_.Find(ip);
  const solver::LockCall lock = solver::LockCallNamed(place.symbol);
  functions_[ip.as_int() - place.symbol_offset] = {
      .size_bytes = std::max<uint64_t>(place.symbol_bytes, 1), .lock = lock};
  return lock;
}

}  // namespace clew::cli
