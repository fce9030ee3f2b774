#ifndef CLEW_BUNDLE_PERF_DATA_FEATURES_H_
#define CLEW_BUNDLE_PERF_DATA_FEATURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/byte_reader.h"
#include "common/result.h"

namespace clew::bundle {

// What perf notes of the recording beside its records. Empty: not told. The
// bytes of texts are as in the file, so perhaps no UTF-8.
//
// Source: tools/perf/Documentation/perf.data-file-format.txt, HEADER_*.
struct PerfFeatures {
  std::string host;
  std::string os_release;
  std::string perf_version;
  std::string cpu_description;
  std::string cpu_id;                // see cpu_id.h
  std::vector<std::string> command;  // perf's own
  // NT_GNU_BUILD_ID by the path that MMAP records have.
  std::map<std::string, std::vector<std::byte>> build_ids;

  // Returns the build-id of what is mapped at `path`; empty if it is not known.
  // All parts of the kernel ("[kernel.kallsyms]_stext") share one.
  std::vector<std::byte> BuildIdOf(const std::string& path) const;
};

// The number of a feature: HEADER_* in tools/perf/util/header.h.
enum PerfFeature : uint32_t {
  kFeatureBuildId = 2,
  kFeatureHostName = 3,
  kFeatureOsRelease = 4,
  kFeatureVersion = 5,
  kFeatureArch = 6,
  kFeatureCpuCounts = 7,
  kFeatureCpuDescription = 8,
  kFeatureCpuId = 9,
  kFeatureCommand = 11,
  kFeatureEvents = 12,
  kFeaturePmus = 16,
  kFeatureAuxtrace = 18,
};
inline constexpr uint32_t kFeaturesEnd = 12;  // none is read from here on

// Reads the section of a feature; one we have no use for is read over. On an
// Error `features` is as before, but for build-ids before the fault.
[[nodiscard]] Status ReadFeature(uint32_t feature, ByteReader& section,
                                 PerfFeatures& features);

// Reads a BUILD_ID record behind its header; `misc` is of the header.
[[nodiscard]] Status ReadBuildIdRecord(uint16_t misc, ByteReader& body,
                                       PerfFeatures& features);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_FEATURES_H_
