#ifndef CLEW_COMMON_ROUND_UP_H_
#define CLEW_COMMON_ROUND_UP_H_

#include <cstdint>

namespace clew {

// Returns the first multiple of `unit` that is not below `value`; 0 where that
// is 2^64.
constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Returns how many bytes the name of an ELF note, or its description, takes up.
// Source: elf(5), "Notes (Nhdr)".
constexpr uint64_t PaddedNoteBytes(uint64_t bytes) { return RoundUp(bytes, 4); }

}  // namespace clew

#endif  // CLEW_COMMON_ROUND_UP_H_
