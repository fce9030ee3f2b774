#include "decoder/sufficiency.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/hex.h"
#include "decoder/host_images.h"
#include "decoder/input_counts.h"
#include "decoder/streams.h"

namespace clew::decoder {
namespace {

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

constexpr uint64_t kAtFailureNanos = 1'000'000'000;
// Gaps that are told apart; more count as one each time they are met.
constexpr size_t kGapsToldApartMax = 1 << 20;
constexpr size_t kReasonsMax = 100;

// What the trace has.
struct Decoded {
  uint64_t instructions = 0;
  uint64_t gaps = 0;
  uint64_t gaps_at_failure = 0;
  bool limited = false;
};

// The last time at which a thread was on a core, in perf's nanoseconds.
uint64_t EndOf(const Trace& trace) {
  uint64_t end = 0;
  for (const Slice& slice : trace.slices()) {
    const TscTicks last =
        slice.time.hi == kTscUnknown ? slice.time.lo : slice.time.hi;
    end = std::max(end, ToPerfNanos(last, trace.conversion()).as_int());
  }
  return end;
}

class Counter {
 public:
  Counter(const Trace& trace, const SufficiencyLimits& limits,
          ProgressSink* progress)
      : trace_(trace),
        limits_(limits),
        progress_(progress),
        deadline_(std::chrono::steady_clock::now() + limits.time_max),
        end_nanos_(EndOf(trace)) {}

  // Decodes everything, always the thread that is furthest behind, so that
  // little waits for the others.
  Result<Decoded> Run() {
    CLEW_ASSIGN_OR_RETURN(
        streams,
        TraceStreams::Create(
            trace_, {.buffered_items_max = limits_.buffered_items_max}));
    for (const Tid thread : streams->threads()) {
      threads_.push_back({.thread = thread});
    }
    while (!Limited(*streams)) {
      const auto next = std::ranges::min_element(
          threads_, {},
          [](const Thread& t) { return std::pair(t.over, t.reached); });
      if (next == threads_.end() || next->over) {
        break;
      }
      CLEW_RETURN_IF_ERROR(CountSome(*streams, *next));
    }
    const StreamStats stats = streams->stats();
    decoded_.instructions = stats.instructions;
    decoded_.gaps = stats.gaps + (stats.instructions_without_thread > 0);
    return decoded_;
  }

 private:
  struct Thread {
    Tid thread;
    TscTicks reached{0};
    bool over = false;
  };

  bool Limited(const TraceStreams& streams) {
    const uint64_t done = streams.stats().instructions;
    decoded_.limited = done >= limits_.instructions_max ||
                       std::chrono::steady_clock::now() >= deadline_;
    if (progress_ != nullptr) {
      progress_->Update(done, 0);
    }
    return decoded_.limited;
  }

  Status CountSome(TraceStreams& streams, Thread& thread) {
    constexpr int kItems = 4096;
    for (int i = 0; i < kItems && !thread.over; ++i) {
      CLEW_ASSIGN_OR_RETURN(item, streams.Next(thread.thread));
      if (!item) {
        thread.over = true;
      } else if (const auto* block = std::get_if<StreamBlock>(&*item)) {
        thread.reached = block->time.lo;
      } else {
        CountGap(std::get<Gap>(*item));
      }
    }
    return {};
  }

  // One place on a core counts once, whoever's slices it covers.
  void CountGap(const Gap& gap) {
    const uint64_t until =
        gap.time.hi == kTscUnknown
            ? end_nanos_
            : ToPerfNanos(gap.time.hi, trace_.conversion()).as_int();
    const bool at_failure = until + kAtFailureNanos >= end_nanos_;
    const CoreId core = trace_.slices()[gap.slice].core;
    if (at_failure && (places_.size() >= kGapsToldApartMax ||
                       places_.emplace(core, gap.aux_offset).second)) {
      ++decoded_.gaps_at_failure;
    }
  }

  const Trace& trace_;
  const SufficiencyLimits& limits_;
  ProgressSink* progress_;
  std::chrono::steady_clock::time_point deadline_;
  uint64_t end_nanos_;
  std::vector<Thread> threads_;
  std::set<std::pair<CoreId, uint64_t>> places_;
  Decoded decoded_;
};

class Checker {
 public:
  Checker(const Bundle& bundle, const SufficiencyLimits& limits,
          ProgressSink* progress)
      : bundle_(bundle), limits_(limits), progress_(progress) {}

  SufficiencyReport Check() {
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

  void CheckTrace() {
    const auto trace = bundle_.ReadTrace();
    if (!trace) {
      LacksFile(trace.error(), "nothing decodes");
      return;
    }
    Counter counter(**trace, limits_, progress_);
    const auto decoded = counter.Run();
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

  void CheckGaps(const Decoded& decoded) {
    const Manifest& manifest = bundle_.manifest();
    found_.gaps = decoded.gaps;
    found_.gaps_at_failure = decoded.gaps_at_failure;
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
    return file && image.has_build_id &&
           BuildIdOf(file->bytes()) != image.build_id;
  }

  void CheckImages(const Trace& trace) {
    std::set<std::pair<std::string, std::string>> missing;
    const MissingImages images =
        FindMissing(trace, bundle_.manifest().failure.thread);
    for (const MmapRecord& mapping : images.needed) {
      missing.emplace(mapping.path, ToHex(mapping.build_id));
    }
    for (const BundleImage& image : bundle_.manifest().images) {
      if (IsAnotherBuild(image)) {
        missing.emplace(image.path, ToHex(image.build_id));
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
  const SufficiencyLimits& limits_;
  ProgressSink* progress_;
  SufficiencyReport report_;
  Sufficiency found_;
  uint32_t score_ = 0;
  bool lacks_ = false;
};

}  // namespace

SufficiencyReport CheckSufficiency(const Bundle& bundle,
                                   const SufficiencyLimits& limits,
                                   ProgressSink* progress) {
  return Checker(bundle, limits, progress).Check();
}

}  // namespace clew::decoder
