#ifndef CLEW_RECORDER_TRACER_RUNTIME_CODE_ARENA_H_
#define CLEW_RECORDER_TRACER_RUNTIME_CODE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/shared_layout.h"

namespace clew::tracer {

// Whether a displacement of 32 bits leads from one to the other.
constexpr bool Reaches(uint64_t from, uint64_t to) {
  const auto distance = static_cast<int64_t>(to - from);
  return distance == static_cast<int32_t>(distance);
}

// Writes machine code, from `at` on.
class Code {
 public:
  Code() = default;
  explicit Code(uint8_t* at) : at_(at) {}
  uint8_t* at() const { return at_; }

  void Byte(unsigned value) { *at_++ = static_cast<uint8_t>(value); }
  void Bytes(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) {
      Byte(byte);
    }
  }
  template <size_t N>
  void Bytes(const uint8_t (&bytes)[N]) {
    Bytes(std::span<const uint8_t>(bytes));
  }
  void Word(uint32_t value) {
    for (int i = 0; i < 4; ++i) {
      Byte(value >> 8 * i & 0xff);
    }
  }
  void Long(uint64_t value) {
    Word(static_cast<uint32_t>(value));
    Word(static_cast<uint32_t>(value >> 32));
  }
  // A displacement that ends an instruction. REQUIRES: it Reaches.
  void Relative(uint64_t target) {
    Word(static_cast<uint32_t>(target - (AddrOf(at_) + 4)));
  }
  void AlignTo(uint64_t bytes, unsigned filler) {
    while ((AddrOf(at_) & (bytes - 1)) != 0) {
      Byte(filler);
    }
  }

 private:
  uint8_t* at_ = nullptr;
};

// A code cache, of which all parts reach each other: fragments, and behind them
// the ways out of those that are not linked yet, and numbers that code loads.
struct Arena {
  static constexpr uint64_t kHotBytes = 160 << 20;
  static constexpr uint64_t kColdBytes = 64 << 20;
  static constexpr uint64_t kNumberBytes = kCacheBytes - kHotBytes - kColdBytes;

  uint64_t begin = 0;
  Code hot;
  Code cold;
  uint64_t* numbers = nullptr;  // the next one
  // Jumps to the entries of the runtime (entries.S).
  uint64_t exit = 0;
  uint64_t miss = 0;
  uint64_t full = 0;
  uint64_t call = 0;
  uint64_t step = 0;
  uint64_t cut = 0;
  uint64_t stale = 0;
  uint64_t input = 0;
  // Where the copies of short blocks go (short_block.h), kShortBytes.
  uint64_t shorts = 0;
  static constexpr uint64_t kShortBytes = 16 << 10;

  bool Has(uint64_t addr) const {
    return begin != 0 && addr - begin < kCacheBytes;
  }
  // Whether a fragment fits, of at most kFragmentBytesMax in each part, and its
  // check.
  static constexpr uint64_t kFragmentBytesMax = 16384;
  static constexpr uint64_t kCheckBytesMax = 16384;
  bool HasRoom() const { return HasRoom(0, 0, 0); }
  // Likewise, with one part of so many of each to spare.
  bool HasRoom(uint64_t parts) const {
    return HasRoom(kHotBytes / parts, kColdBytes / parts, kNumberBytes / parts);
  }
  // Returns the address of a number.
  uint64_t Number(uint64_t value) {
    *numbers = value;
    return AddrOf(numbers++);
  }

 private:
  bool HasRoom(uint64_t hot_spare, uint64_t cold_spare,
               uint64_t number_spare) const {
    const uint64_t margin = kFragmentBytesMax + kCheckBytesMax;
    const uint64_t cold_at = begin + kHotBytes;
    return AddrOf(hot.at()) + margin + hot_spare < cold_at &&
           AddrOf(cold.at()) + margin + cold_spare < cold_at + kColdBytes &&
           AddrOf(numbers) + margin + number_spare < begin + kCacheBytes;
  }
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_CODE_ARENA_H_
