#ifndef CLEW_RECORDER_NATIVE_SHOWN_CPU_H_
#define CLEW_RECORDER_NATIVE_SHOWN_CPU_H_

#include <cstdint>

namespace clew::recorder {

struct CpuidResult {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// What CPUID tells a program that is stepped: this host's CPU, without the
// features whose instructions a replay does not know (x86-64-v2 is left), and
// without the number of the core that is asked, which would differ from run to
// run. Source: Intel SDM vol. 2, "CPUID"; AMD64 APM vol. 3, appendix E.
CpuidResult ShownCpuid(uint32_t leaf, uint32_t subleaf);

// MXCSR_MASK of this host's CPU. Source: Intel SDM vol. 1, "Checking for the
// DAZ Flag in the MXCSR Register".
uint32_t HostMxcsrMask();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_SHOWN_CPU_H_
