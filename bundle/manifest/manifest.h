#ifndef CLEW_BUNDLE_MANIFEST_MANIFEST_H_
#define CLEW_BUNDLE_MANIFEST_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/perf_data/tsc_conversion.h"
#include "common/bundle_facts.h"
#include "common/cpu_identity.h"
#include "common/inputs.h"

namespace clew::bundle {

// The format that is written, and the latest that is read.
inline constexpr uint32_t kFormatVersion = 1;

// Most cores of a recording that a manifest may tell.
inline constexpr uint32_t kManifestCoresMax = 65536;

enum class BundleSource : uint8_t {
  kUnknown,
  kPerf,
  kQemu,
  kStepper,
  kImported,    // by `clew import`
  kTracer,      // one thread at a time
  kTracerFree,  // all threads at once
};
// Whether the CPU wrote the trace.
constexpr bool IsOfHardware(BundleSource source) {
  return source == BundleSource::kPerf || source == BundleSource::kImported;
}
// Whether our encoder did.
constexpr bool IsOfSoftware(BundleSource source) {
  return source == BundleSource::kQemu || source == BundleSource::kStepper ||
         source == BundleSource::kTracer || source == BundleSource::kTracerFree;
}
// Whether threads ran at once, and no seed said how.
constexpr bool RanAtOnce(BundleSource source) {
  return IsOfHardware(source) || source == BundleSource::kTracerFree;
}

struct BundleImage {
  std::string path;  // at recording time
  std::vector<std::byte> build_id;
  bool has_build_id = false;
  bool not_verified = false;  // taken by its path alone
  uint64_t size_bytes = 0;
  // Where its bytes are; not written. Of a bundle that was read, in there, and
  // it may be missing; of one to be written, where it is copied from, and empty
  // if that is not known.
  std::string file = {};
  bool operator==(const BundleImage&) const = default;
};

// Where an imported recording was made; empty: not known.
struct BundleOrigin {
  std::string host;
  std::string os_release;
  std::string cpu;
  std::string perf_version;
  bool snapshot = false;
  bool operator==(const BundleOrigin&) const = default;
};

// How PT's packets tell the time; 0: not known.
struct PtTiming {
  uint32_t tsc_ctc_numerator = 0;
  uint32_t tsc_ctc_denominator = 0;
  uint32_t mtc_period = 0;
  bool mtc = false;
  bool tsc = false;
  bool cyc = false;
  uint32_t max_nonturbo_ratio = 0;
  bool operator==(const PtTiming&) const = default;
};

// Where and with what a program was started.
struct Surroundings {
  std::string program;            // its file, seen from working_directory
  std::string working_directory;  // absolute
  std::vector<std::string> environment;  // "NAME=value", in order
  uint64_t stack_limit_bytes = UINT64_MAX;
  bool operator==(const Surroundings&) const = default;
};

// How a program was recorded, besides what the manifest has for all sources.
struct RunSettings {
  std::vector<std::string> arguments;  // argv
  Surroundings surroundings;
  uint32_t psb_period_bytes = 0;
  std::string fail_on;
  uint32_t timeout_s = 0;
  uint64_t size_limit_bytes = 0;
  bool operator==(const RunSettings&) const = default;
};

// manifest.pb, as plain values; proto/bundle.proto is the specification.
struct Manifest {
  std::string producer;  // of one that was read
  BundleSource source = BundleSource::kUnknown;
  CpuIdentity cpu;
  uint32_t core_count = 0;
  uint64_t clock_slack_ticks = 0;
  TscConversion conversion;
  PtTiming timing;
  std::vector<std::string> command;
  std::string working_directory;
  int64_t recorded_at_s = 0;
  Failure failure;
  std::vector<BundleImage> images;
  uint64_t lost_aux_bytes = 0;
  uint64_t lost_records = 0;
  uint64_t inputs_unknown = 0;
  uint64_t seed = 0;
  uint32_t quantum_insns = 0;
  bool core_registers_exact = false;
  BundleOrigin origin;
  std::optional<Trigger> trigger;
  std::optional<Sufficiency> sufficiency;
  std::vector<std::string> redactions;       // one line a rule that applied
  std::vector<std::string> unlogged_inputs;  // a phrase for each cause
  std::vector<std::string> deviations;       // a phrase for each
  Journal journal;                           // of the host, about the failure
  std::string assertion;      // that ended the run, kept by redaction
  std::string trace_dropped;  // why there is none; empty: there is
  std::optional<RunSettings> settings;
  uint64_t digest = 0;  // of manifest.pb; of one that was read
  bool operator==(const Manifest&) const = default;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_MANIFEST_H_
