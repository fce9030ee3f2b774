#include "cli/race_report.h"

#include <fmt/format.h>

#include <utility>

#include "cli/code_names.h"
#include "cli/image_guide.h"
#include "common/text/path_names.h"
#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"
#include "machine/memory_models.h"

namespace clew::cli {
namespace {

using decoder::LoadedImages;

// Gives names to what a witness shows.
class Namer {
 public:
  explicit Namer(const LoadedImages& images)
      : images_(images), unwinder_(images_, nullptr) {}

  decoder::Unwinder& unwinder() { return unwinder_; }

  NamedRace Named(const solver::Race& race) {
    NamedRace named = {.internal = race.internal,
                       .under_locks = race.under_locks,
                       .accesses = {}};
    for (const solver::RaceAccess& access : race.accesses) {
      named.accesses.push_back(Named(access));
    }
    return named;
  }

  NamedWait Named(const solver::WaitingThread& waiting) {
    NamedWait named = {.waiting = waiting,
                       .variable = VariableAt(TraceeAddr(waiting.addr)),
                       .place = CallAt(waiting.site),
                       .held = {}};
    for (const solver::HeldLock& lock : waiting.held) {
      named.held.push_back({.addr = lock.addr,
                            .variable = VariableAt(TraceeAddr(lock.addr)),
                            .shared = lock.shared,
                            .place = CallAt(lock.site)});
    }
    return named;
  }

 private:
  NamedAccess Named(const solver::RaceAccess& access) {
    const bool called = access.caller != TraceeAddr();
    NamedAccess named = {
        .access = access,
        .place = called ? CallAt(access.caller) : PlaceAt(access.access.ip)};
    if (called && access.access.ip != TraceeAddr()) {
      named.within = LibraryAt(access.access.ip);
    }
    if (!access.call) {
      named.variable = VariableAt(access.access.addr);
    }
    return named;
  }

  NamedPlace PlaceAt(TraceeAddr ip) {
    NamedPlace named;
    if (const auto* image = images_.Find(ip)) {
      decoder::CodePlace place = unwinder_.Find(ip);
      named.function = decoder::ReadableName(place.symbol);
      named.file = std::move(place.file);
      named.line = place.line;
      named.module = BaseName(image->path);
      named.offset = ip.as_int() - image->bias;
    }
    return named;
  }

  // `site` is an instruction that takes a lock, or what follows a call.
  NamedPlace CallAt(TraceeAddr site) {
    return site == TraceeAddr() ? NamedPlace()
                                : PlaceAt(TraceeAddr(site.as_int() - 1));
  }

  // The function, or the library where it has no name.
  std::string LibraryAt(TraceeAddr ip) {
    const auto* const image = images_.Find(ip);
    const std::string name = decoder::ReadableName(unwinder_.Find(ip).symbol);
    return image != nullptr && name.empty() ? BaseName(image->path) : name;
  }

  // "balance", or "accounts+0x28".
  std::string VariableAt(TraceeAddr addr) {
    if (images_.Find(addr) == nullptr) {
      return "";
    }
    const decoder::CodePlace place = unwinder_.Find(addr);
    std::string name = decoder::ReadableName(place.symbol);
    if (place.symbol_offset > 0) {
      name += fmt::format("+{:#x}", place.symbol_offset);
    }
    return name;
  }

  const LoadedImages& images_;
  decoder::Unwinder unwinder_;
};

}  // namespace

bool HasCycle(const Findings& findings) {
  return !findings.waits.empty() && findings.waits.front().waiting.in_cycle;
}

Result<Findings> FindingsOf(const follower::BundleRecording& recording,
                            const Schedule& schedule) {
  const auto read = ImagesOf(recording);
  const LoadedImages images = read ? *read : LoadedImages();
  Namer namer(images);
  ImageGuide guide(images, namer.unwinder());
  follower::Recording under = recording.recording;
  under.model = machine::MemoryModelOf(schedule.model);
  CLEW_ASSIGN_OR_RETURN(report,
                        solver::FindRaces(under, schedule.steps, guide));
  Findings findings;
  for (const solver::Race& race : report.races) {
    findings.races.push_back(namer.Named(race));
  }
  for (const solver::WaitingThread& waiting : report.waiting) {
    findings.waits.push_back(namer.Named(waiting));
  }
  if (under.failure.kind != FailureKind::kHang && !HasCycle(findings)) {
    findings.waits.clear();  // they were to be woken
  }
  return findings;
}

}  // namespace clew::cli
