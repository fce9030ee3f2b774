#ifndef CLEW_COMMON_ACCESS_H_
#define CLEW_COMMON_ACCESS_H_

#include <cstdint>

#include "common/units.h"

namespace clew {

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kReadModifyWrite,  // an atomic read-modify-write is one access
};

inline bool Writes(AccessKind kind) { return kind != AccessKind::kRead; }
inline bool Reads(AccessKind kind) { return kind != AccessKind::kWrite; }

// One memory access of one instruction. An instruction may make several.
struct Access {
  Tid thread;
  uint64_t insn_index = 0;  // instructions the thread retired before this one
  TraceeAddr ip;
  TraceeAddr addr;
  uint32_t size_bytes = 0;
  AccessKind kind = AccessKind::kRead;
};

}  // namespace clew

#endif  // CLEW_COMMON_ACCESS_H_
