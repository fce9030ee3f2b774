#ifndef CLEW_COMMON_CPU_IDENTITY_H_
#define CLEW_COMMON_CPU_IDENTITY_H_

#include <cstdint>

namespace clew {

// The CPU that made the trace, for its errata.
struct CpuIdentity {
  bool is_intel = false;
  uint16_t family = 0;
  uint8_t model = 0;
  uint8_t stepping = 0;
  bool operator==(const CpuIdentity&) const = default;
};

}  // namespace clew

#endif  // CLEW_COMMON_CPU_IDENTITY_H_
