#ifndef CLEW_COMMON_X86_PAGE_H_
#define CLEW_COMMON_X86_PAGE_H_

// The smallest page of x86-64, in which mappings, protections and faults are
// counted. A macro, because the core handler (daemon/) is C; C++ uses the
// constant.
#define CLEW_PAGE_BYTES 4096

#ifdef __cplusplus
#include <cstdint>

#include "common/round_up.h"

namespace clew {

inline constexpr uint64_t kPageBytes = CLEW_PAGE_BYTES;

constexpr uint64_t RoundUpToPage(uint64_t bytes) {
  return RoundUp(bytes, kPageBytes);
}

// Returns how many pages so many bytes take.
constexpr uint64_t PagesIn(uint64_t bytes) {
  return RoundUpToPage(bytes) / kPageBytes;
}

}  // namespace clew
#endif

#endif  // CLEW_COMMON_X86_PAGE_H_
