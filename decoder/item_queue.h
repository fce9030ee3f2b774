#ifndef CLEW_DECODER_ITEM_QUEUE_H_
#define CLEW_DECODER_ITEM_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "common/result.h"
#include "common/stream.h"
#include "common/units.h"

namespace clew::decoder {

// Blocks and gaps of one slice that wait for their thread, first in, first out.
//
// Memory: 16 bytes for a block, and 16 for each time bound that is not that of
// the block before; a bound holds for many blocks, from one timing packet to
// the next. Gaps are rare and kept as they are. What was popped is freed once
// all is popped. Not thread-safe.
//
// A block is written and read field by field, in place: the processor stalls
// where it reads at once what was just written in parts.
class ItemQueue {
 public:
  bool empty() const { return read_ == size_; }
  // How many items wait. Cost: looks at each.
  uint64_t CountItems() const;

  // REQUIRES: every block is of the same slice.
  void Push(const StreamBlock& block) {
    PushBlock(block.ip, block.insn_count, block.time.lo, block.time.hi,
              block.interrupted, block.is_syscall, block.code_bits);
  }
  void PushBlock(TraceeAddr ip, uint32_t insn_count, TscTicks lo, TscTicks hi,
                 bool interrupted, bool is_syscall, uint8_t code_bits) {
    if (size_ + kEntriesOfBlockMax > capacity_) [[unlikely]] {
      Grow();
    }
    if (lo != pushed_.lo) {
      Append(Kind::kLower, lo.as_int());
      pushed_.lo = lo;
    }
    if (hi != pushed_.hi) {
      Append(Kind::kUpper, hi.as_int());
      pushed_.hi = hi;
    }
    Entry& entry = Append(Kind::kBlock, ip.as_int());
    entry.insn_count = insn_count;
    entry.code_bits = code_bits;
    entry.interrupted = interrupted;
    entry.is_syscall = is_syscall;
  }
  void Push(Gap gap);

  // The first item, as a stream returns it. `slice` goes into a block.
  // REQUIRES: !empty().
  Result<std::optional<StreamItem>> Pop(uint32_t slice) {
    if (entries_[read_].kind == Kind::kGap) [[unlikely]] {
      return PopGap();
    }
    return PopBlock(slice);
  }

 private:
  enum class Kind : uint8_t { kBlock, kLower, kUpper, kGap };
  struct Entry {
    uint64_t value = 0;  // kBlock: ip; kLower, kUpper: the bound from here on
    uint32_t insn_count = 0;
    Kind kind = Kind::kBlock;
    uint8_t code_bits = 64;
    bool interrupted = false;
    bool is_syscall = false;
  };
  static_assert(sizeof(Entry) == 16);
  static constexpr size_t kEntriesOfBlockMax = 3;  // two bounds before it

  // REQUIRES: there is room.
  Entry& Append(Kind kind, uint64_t value) {
    Entry& entry = entries_[size_++];
    entry.value = value;
    entry.kind = kind;
    return entry;
  }
  void Grow();

  Result<std::optional<StreamItem>> PopBlock(uint32_t slice) {
    ReadBounds();
    const Entry& entry = entries_[read_];
    Advance();
    return Result<std::optional<StreamItem>>(
        std::in_place, std::in_place, std::in_place_type<StreamBlock>,
        TraceeAddr(entry.value), entry.insn_count, slice, popped_,
        entry.interrupted, entry.is_syscall, entry.code_bits);
  }
  Result<std::optional<StreamItem>> PopGap();

  // Bounds are always followed by their block.
  void ReadBounds() {
    for (; entries_[read_].kind != Kind::kBlock; ++read_) {
      const Entry& entry = entries_[read_];
      (entry.kind == Kind::kLower ? popped_.lo : popped_.hi) =
          TscTicks(entry.value);
    }
  }

  // What it leaves behind can be read until the next push.
  void Advance() {
    if (++read_ == size_) {
      size_ = 0;
      read_ = 0;
    }
  }

  std::unique_ptr<Entry[]> entries_;
  size_t capacity_ = 0;
  size_t size_ = 0;
  size_t read_ = 0;     // entries before this one were popped
  TscInterval pushed_;  // of the last block pushed
  TscInterval popped_;  // of the last block popped
  std::unique_ptr<std::deque<Gap>> gaps_;  // of the kGap entries
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ITEM_QUEUE_H_
