#ifndef CLEW_BUNDLE_PERF_DATA_CPU_ID_H_
#define CLEW_BUNDLE_PERF_DATA_CPU_ID_H_

#include <string_view>

#include "common/cpu_identity.h"

namespace clew::bundle {

// Returns the CPU that perf's CPUID feature names: "GenuineIntel,6,78,3", in
// decimal vendor, family, model and stepping, the extended ones included. Any
// other text, another vendor's too, gives a CPU without known errata.
//
// Source: linux/tools/perf/arch/x86/util/header.c, get_cpuid.
CpuIdentity ParseCpuId(std::string_view text);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_CPU_ID_H_
