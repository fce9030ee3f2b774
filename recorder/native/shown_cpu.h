#ifndef CLEW_RECORDER_NATIVE_SHOWN_CPU_H_
#define CLEW_RECORDER_NATIVE_SHOWN_CPU_H_

#include <cstdint>

#include "common/inputs.h"
#include "common/x86/features.h"

namespace clew::recorder {

using x86::CpuidResult;

// What a program that is stepped is told of its CPU: it is this host's, without
// the features that the machine does not carry out, and without the number of
// the core that is asked, which would differ from run to run. Source: Intel SDM
// vol. 2, "CPUID"; AMD64 APM vol. 3, appendix E.
CpuidResult ShownCpuid(uint32_t leaf, uint32_t subleaf);
x86::FeatureSet ShownFeatures();
// What XGETBV reads: the state components that programs may use. 0: it has no
// XGETBV.
uint64_t ShownXcr0();
// All of it.
const ToldCpu& ShownCpu();
// What the host's CPU tells a program that runs on it: of the core that asks.
ToldCpu HostCpu();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_SHOWN_CPU_H_
