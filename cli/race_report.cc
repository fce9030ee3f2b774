#include "cli/race_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/code_names.h"
#include "common/text/path_names.h"
#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"

namespace clew::cli {
namespace {

using decoder::LoadedImages;

NamedAccess Named(const LoadedImages& images, decoder::Unwinder& unwinder,
                  const solver::RaceAccess& race) {
  NamedAccess named = {.access = race};
  if (const auto* image = images.Find(race.access.ip)) {
    decoder::CodePlace place = unwinder.Find(race.access.ip);
    named.function = decoder::ReadableName(place.symbol);
    named.file = std::move(place.file);
    named.line = place.line;
    named.module = BaseName(image->path);
    named.offset = race.access.ip.as_int() - image->bias;
  }
  if (images.Find(race.access.addr) != nullptr) {
    named.variable =
        decoder::ReadableName(unwinder.Find(race.access.addr).symbol);
  }
  return named;
}

const char* VerbOf(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "reads";
    case AccessKind::kWrite:
      return "writes";
    case AccessKind::kReadModifyWrite:
      break;
  }
  return "changes";
}

bool HasSource(const std::vector<NamedAccess>& race) {
  return std::ranges::any_of(
      race, [](const NamedAccess& access) { return !access.file.empty(); });
}

}  // namespace

std::vector<std::vector<NamedAccess>> NameRaces(
    const follower::BundleRecording& recording,
    const std::vector<solver::Race>& races) {
  const auto read = ImagesOf(recording);
  const LoadedImages images = read ? *read : LoadedImages();
  decoder::Unwinder unwinder(images, nullptr);
  std::vector<std::vector<NamedAccess>> named;
  for (const solver::Race& race : races) {
    auto& accesses = named.emplace_back();
    for (const solver::RaceAccess& access : race) {
      accesses.push_back(Named(images, unwinder, access));
    }
  }
  if (std::ranges::any_of(named, HasSource)) {
    std::erase_if(named, std::not_fn(HasSource));
  }
  return named;
}

std::string Describe(const NamedAccess& access) {
  const Access& seen = access.access.access;
  return fmt::format("{} {} at {}", VerbOf(seen.kind), access.access.value,
                     access.variable.empty()
                         ? fmt::format("{:#x}", seen.addr)
                         : fmt::format("{:?}", access.variable));
}

}  // namespace clew::cli
