#ifndef CLEW_COMMON_X86_XCR0_H_
#define CLEW_COMMON_X86_XCR0_H_

#include <cstdint>

namespace clew::x86 {

// Returns what XGETBV of 0 gives on this host: the state that the kernel saves
// for programs. 0: it has no XGETBV. Source: Intel SDM vol. 1, "Detection of
// Intel AVX Instructions".
uint64_t HostXcr0();

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_XCR0_H_
