#ifndef CLEW_RECORDER_HOST_DESCRIPTION_H_
#define CLEW_RECORDER_HOST_DESCRIPTION_H_

#include <cstdint>
#include <string>

#include "bundle/perf_data/file_format.h"
#include "recorder/perf/pmu.h"

namespace clew::recorder {

// This CPU, by CPUID. Family and model have their extended parts (Intel SDM
// vol. 2A, "CPUID", "Version Information").
struct CpuDescription {
  std::string vendor;  // "GenuineIntel"
  uint32_t family = 0;
  uint32_t model = 0;
  uint32_t stepping = 0;
  std::string name;  // for people, from /proc/cpuinfo

  bool is_intel() const { return vendor == "GenuineIntel"; }
  std::string PerfId() const;  // "GenuineIntel,6,158,10"
};

struct HostDescription {
  std::string host_name;
  std::string os_release;
  CpuDescription cpu;
};

// `proc` is where procfs is mounted.
HostDescription DescribeHost(const std::string& proc);

// What a decoder has to know of `pmu` to read traces of `attr`: clock ratios
// from max_nonturbo_ratio and tsc_art_ratio in its folder, or from CPUID leaf
// 15H where the kernel does not tell (0 where neither does).
bundle::PtInfo DescribePt(const perf::Pmu& pmu);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_HOST_DESCRIPTION_H_
