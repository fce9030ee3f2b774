#ifndef CLEW_FOLLOWER_BUNDLE_BUNDLE_RECORDING_H_
#define CLEW_FOLLOWER_BUNDLE_BUNDLE_RECORDING_H_

#include <memory>
#include <optional>
#include <string>

#include "bundle/bundle.h"
#include "bundle/core_dump/core_dump.h"
#include "common/result.h"
#include "decoder/perf_trace.h"
#include "follower/recording.h"

namespace clew::follower {

// A bundle as solving and replaying take it. Owns what `recording` borrows, so
// it stays in one place and outlives every use of it.
struct BundleRecording {
  explicit BundleRecording(bundle::Bundle from) : bundle(std::move(from)) {}
  BundleRecording(const BundleRecording&) = delete;
  BundleRecording& operator=(const BundleRecording&) = delete;

  bundle::Bundle bundle;
  std::unique_ptr<decoder::PerfTrace> trace;
  std::optional<bundle::CoreDump> core;
  Recording recording;
};

// Opens the bundle at `bundle_path`. Fails as bundle::Bundle does, and with
// kUnsupported if the bundle lacks what solving and replaying begin with: it
// has no start state, and was imported or recorded in hardware or has 32-bit
// code.
[[nodiscard]] Result<std::unique_ptr<BundleRecording>> OpenRecording(
    const std::string& bundle_path);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_BUNDLE_BUNDLE_RECORDING_H_
