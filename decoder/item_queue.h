#ifndef CLEW_DECODER_ITEM_QUEUE_H_
#define CLEW_DECODER_ITEM_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/stream.h"
#include "common/units.h"

namespace clew::decoder {

// Blocks and gaps of one slice that wait for their thread, first in, first out.
//
// Memory: 16 bytes for a block, and 16 for each time bound that is not that of
// the block before; a bound holds for many blocks, from one timing packet to
// the next. Gaps are rare and kept as they are. What was popped is freed once
// all is popped. Not thread-safe.
class ItemQueue {
 public:
  bool empty() const { return read_ == entries_.size(); }
  // How many items wait. Cost: looks at each.
  uint64_t CountItems() const;

  // REQUIRES: every block is of the same slice.
  void Push(const StreamBlock& block) {
    PushBound(Kind::kLower, block.time.lo, pushed_.lo);
    PushBound(Kind::kUpper, block.time.hi, pushed_.hi);
    entries_.push_back({.value = block.ip.as_int(),
                        .insn_count = block.insn_count,
                        .kind = Kind::kBlock,
                        .code_bits = block.code_bits,
                        .interrupted = block.interrupted});
  }
  void Push(Gap gap);

  // REQUIRES: !empty().
  bool FrontIsGap() const { return entries_[read_].kind == Kind::kGap; }

  // The first item, which must be a block (a gap). `slice` goes into it.
  StreamBlock PopBlock(uint32_t slice) {
    ReadBounds();
    const Entry& entry = entries_[read_];
    const StreamBlock block = {.ip = TraceeAddr(entry.value),
                               .insn_count = entry.insn_count,
                               .slice = slice,
                               .time = popped_,
                               .interrupted = entry.interrupted,
                               .code_bits = entry.code_bits};
    Advance();
    return block;
  }
  Gap PopGap();

 private:
  enum class Kind : uint8_t { kBlock, kLower, kUpper, kGap };
  struct Entry {
    uint64_t value = 0;  // kBlock: ip; kLower, kUpper: the bound from here on
    uint32_t insn_count = 0;
    Kind kind = Kind::kBlock;
    uint8_t code_bits = 64;
    bool interrupted = false;
  };
  static_assert(sizeof(Entry) == 16);

  void PushBound(Kind kind, TscTicks bound, TscTicks& last) {
    if (bound != last) {
      entries_.push_back({.value = bound.as_int(), .kind = kind});
      last = bound;
    }
  }

  // Bounds are always followed by their block.
  void ReadBounds() {
    for (; entries_[read_].kind != Kind::kBlock; ++read_) {
      const Entry& entry = entries_[read_];
      (entry.kind == Kind::kLower ? popped_.lo : popped_.hi) =
          TscTicks(entry.value);
    }
  }

  void Advance() {
    if (++read_ == entries_.size()) {
      entries_.clear();
      read_ = 0;
    }
  }

  std::vector<Entry> entries_;
  size_t read_ = 0;     // entries before this one were popped
  TscInterval pushed_;  // of the last block pushed
  TscInterval popped_;  // of the last block popped
  std::unique_ptr<std::deque<Gap>> gaps_;  // of the kGap entries
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ITEM_QUEUE_H_
