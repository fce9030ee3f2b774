#include "decoder/sufficiency.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/build_id.h"
#include "common/os/file.h"
#include "common/text/hex.h"
#include "decoder/bundle_trace.h"
#include "decoder/input_counts.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using bundle::Manifest;
using bundle::MmapRecord;

constexpr uint32_t kDecodesPoints = 10;
constexpr uint32_t kNoGapsAtFailurePoints = 20;
constexpr uint32_t kNoGapsPoints = 10;
constexpr uint32_t kImagesPoints = 15;
constexpr uint32_t kStartPoints = 20;
constexpr uint32_t kInputsPoints = 10;
constexpr uint32_t kInputsKnownPoints = 10;
constexpr uint32_t kCorePoints = 5;
static_assert(kDecodesPoints + kNoGapsAtFailurePoints + kNoGapsPoints +
                  kImagesPoints + kStartPoints + kInputsPoints +
                  kInputsKnownPoints + kCorePoints ==
              100);

constexpr size_t kReasonsMax = 100;

class Checker {
 public:
  Checker(const Bundle& bundle, const DecodeLimits& limits,
          ProgressSink* progress)
      : bundle_(bundle), limits_(limits), progress_(progress) {}

  SufficiencyReport Check() {
    if (const std::string& why = bundle_.manifest().trace_dropped;
        !why.empty()) {
      Lacks(fmt::format("the trace was dropped: {}", why));
    }
    CheckTrace();
    CheckStart();
    CheckInputs();
    CheckCore();
    for (const std::string& line : bundle_.manifest().redactions) {
      Say(fmt::format("redacted: {}", line));
    }
    found_.score = found_.decodes ? score_ : 0;
    report_.solvable = found_.decodes && !lacks_;
    report_.sufficiency = std::move(found_);
    return std::move(report_);
  }

 private:
  // Manifests are UTF-8, and files have names that are not.
  void Say(const std::string& reason) {
    if (found_.reasons.size() < kReasonsMax) {
      found_.reasons.push_back(reason);
    }
  }
  // Something that solving needs is not there.
  void Lacks(const std::string& reason) {
    lacks_ = true;
    Say(reason);
  }
  void LacksFile(const Error& error, const std::string& what) {
    report_.corrupt |= error.code == ErrorCode::kCorruptInput;
    Lacks(fmt::format("{}: {}", what, error.message));
  }

  // The thread that failed, or the process of which a snapshot was asked for;
  // 0: neither is known.
  Tid Failing() const {
    const Manifest& manifest = bundle_.manifest();
    if (manifest.failure.thread == Tid(0) && manifest.trigger) {
      return Tid(manifest.trigger->process);
    }
    return manifest.failure.thread;
  }

  void CheckTrace() {
    const auto trace = ReadTrace(bundle_);
    if (!trace) {
      LacksFile(trace.error(), "nothing decodes");
      return;
    }
    const auto decoded = CountGaps(**trace, Failing(), limits_, progress_);
    if (!decoded) {
      report_.limited |= decoded.error().code == ErrorCode::kLimit;
      LacksFile(decoded.error(), "the trace does not decode");
      return;
    }
    found_.decodes = decoded->instructions > 0;
    if (!found_.decodes) {
      Lacks("nothing decodes: no instruction comes out of the trace");
    }
    score_ += kDecodesPoints;
    CheckImages(**trace);
    CheckGaps(*decoded);
  }

  void CheckGaps(const GapCounts& decoded) {
    const Manifest& manifest = bundle_.manifest();
    found_.gaps = decoded.gaps;
    found_.gaps_at_failure = decoded.gaps_at_failure;
    if (decoded.not_64_bit > 0) {
      Lacks(fmt::format("{} instructions are 32-bit code, which is not solved",
                        decoded.not_64_bit));
    }
    if (decoded.limited) {
      report_.limited = true;
      Lacks(
          fmt::format("a limit was reached after {} instructions: whether "
                      "there are gaps behind is not known",
                      decoded.instructions));
      return;
    }
    if (decoded.gaps_at_failure > 0) {
      Lacks(fmt::format("{} gaps in the last second of the trace",
                        decoded.gaps_at_failure));
    } else {
      score_ += kNoGapsAtFailurePoints;
    }
    if (decoded.gaps > 0) {
      Lacks(fmt::format("{} gaps in the trace", decoded.gaps));
    }
    if (decoded.gaps_of_others > 0) {
      Say(fmt::format("{} gaps while other processes ran",
                      decoded.gaps_of_others));
    }
    if (manifest.lost_aux_bytes + manifest.lost_records > 0) {
      Lacks(
          fmt::format("{} bytes of trace and {} records were lost when it "
                      "was recorded",
                      manifest.lost_aux_bytes, manifest.lost_records));
    }
    if (decoded.gaps + manifest.lost_aux_bytes + manifest.lost_records == 0) {
      score_ += kNoGapsPoints;
    }
  }

  // An image that is there and another build's is as good as none.
  bool IsAnotherBuild(const BundleImage& image) const {
    const auto file = MappedFile::Open(image.file);
    return file && ImageIdOf(file->bytes()) != image.build_id;
  }

  void CheckImages(const PerfTrace& trace) {
    std::set<std::pair<std::string, std::string>> missing;
    const MissingImages images = FindMissing(trace, Failing());
    for (const MmapRecord& mapping : images.needed) {
      missing.emplace(mapping.path, ToHex(mapping.build_id));
    }
    for (const BundleImage& image : bundle_.manifest().images) {
      if (IsAnotherBuild(image)) {
        missing.emplace(image.path, ToHex(image.build_id));
      } else if (image.not_verified) {
        Say(
            fmt::format("{:?} was taken by its path alone: nothing tells "
                        "whether it is the build that ran",
                        image.path));
      }
    }
    found_.images_missing = static_cast<uint32_t>(missing.size());
    for (const auto& [path, build_id] : missing) {
      Lacks(fmt::format("no image of {:?}, build-id {}", path,
                        build_id.empty() ? "unknown" : build_id));
    }
    if (images.others > 0) {
      Say(fmt::format("no images of {} files of other processes",
                      images.others));
    }
    score_ += missing.empty() ? kImagesPoints : 0;
  }

  void CheckStart() {
    const auto start = bundle_.ReadStart();
    if (start) {
      score_ += kStartPoints;
    } else {
      LacksFile(start.error(), "no start state");
    }
  }

  void CheckInputs() {
    const auto inputs = CountInputs(bundle_);
    if (!inputs) {
      LacksFile(inputs.error(), "no input log");
      return;
    }
    score_ += kInputsPoints;
    if (inputs->unknown > 0) {
      Lacks(fmt::format("{} inputs are not known", inputs->unknown));
    } else {
      score_ += kInputsKnownPoints;
    }
  }

  void CheckCore() {
    const auto core = bundle_.ReadCore();
    if (core && *core) {
      score_ += kCorePoints;
    } else if (core) {
      Say("no core dump: no stacks, and no memory to compare a witness with");
    } else {
      report_.corrupt |= core.error().code == ErrorCode::kCorruptInput;
      Say(fmt::format("no core dump: {}", core.error().message));
    }
  }

  const Bundle& bundle_;
  const DecodeLimits& limits_;
  ProgressSink* progress_;
  SufficiencyReport report_;
  Sufficiency found_;
  uint32_t score_ = 0;
  bool lacks_ = false;
};

}  // namespace

SufficiencyReport CheckSufficiency(const Bundle& bundle,
                                   const DecodeLimits& limits,
                                   ProgressSink* progress) {
  return Checker(bundle, limits, progress).Check();
}

}  // namespace clew::decoder
