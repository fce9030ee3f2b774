#ifndef CLEW_DECODER_ITEM_QUEUE_H_
#define CLEW_DECODER_ITEM_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
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
// the next. Gaps are rare and kept as they are. Entries are in chunks, of which
// one is freed once all in it is popped, or all in the queue. Not thread-safe.
//
// A block is written and read field by field, in place: the processor stalls
// where it reads at once what was just written in parts.
class ItemQueue {
 public:
  bool empty() const { return read_ == written_; }
  // How many items wait. Cost: looks at each.
  uint64_t CountItems() const;

  // REQUIRES: every block is of the same slice.
  void Push(const StreamBlock& block) {
    PushBlock(block.ip, block.insn_count, block.time.lo, block.time.hi,
              block.interrupted, block.is_syscall, block.code_bits);
  }
  void PushBlock(TraceeAddr ip, uint32_t insn_count, TscTicks lo, TscTicks hi,
                 bool interrupted, bool is_syscall, uint8_t code_bits) {
    if (Room() < kEntriesOfBlockMax) [[unlikely]] {
      AddChunk();
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
    if (read_ == chunk_end_) [[unlikely]] {
      NextChunk();
    }
    if (read_->kind == Kind::kGap) [[unlikely]] {
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
  static constexpr ptrdiff_t kEntriesOfBlockMax = 3;  // two bounds before it
  struct Chunk {
    std::unique_ptr<Entry[]> entries;
    Entry* end = nullptr;  // of what was written, in all but the last one
  };

  ptrdiff_t Room() const { return end_ - written_; }
  // REQUIRES: there is room.
  Entry& Append(Kind kind, uint64_t value) {
    Entry& entry = *written_++;
    entry.value = value;
    entry.kind = kind;
    return entry;
  }
  void AddChunk();

  Result<std::optional<StreamItem>> PopBlock(uint32_t slice) {
    ReadBounds();
    const Entry& entry = *read_;
    Advance();
    return Result<std::optional<StreamItem>>(
        std::in_place, std::in_place, std::in_place_type<StreamBlock>,
        TraceeAddr(entry.value), entry.insn_count, slice, popped_,
        entry.interrupted, entry.is_syscall, entry.code_bits);
  }
  Result<std::optional<StreamItem>> PopGap();

  // Bounds are always followed by their block, in the same chunk.
  void ReadBounds() {
    for (; read_->kind != Kind::kBlock; ++read_) {
      (read_->kind == Kind::kLower ? popped_.lo : popped_.hi) =
          TscTicks(read_->value);
    }
  }

  // What it leaves behind can be read until the next push.
  void Advance() {
    if (++read_ == written_) {
      written_ = first_;
      read_ = first_;
    }
  }
  void NextChunk();

  // The first is read, the last one written; only the last one may be empty,
  // and then it is the only one.
  std::forward_list<Chunk> chunks_;
  std::forward_list<Chunk>::iterator last_;
  size_t capacity_ = 0;          // of the last one
  Entry* first_ = nullptr;       // of the first one
  const Entry* read_ = nullptr;  // entries before this one were popped
  Entry* chunk_end_ = nullptr;   // of the first one, if it is not the last
  Entry* written_ = nullptr;     // of the last one, as
  Entry* end_ = nullptr;
  TscInterval pushed_;                     // of the last block pushed
  TscInterval popped_;                     // of the last block popped
  std::unique_ptr<std::deque<Gap>> gaps_;  // of the kGap entries
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ITEM_QUEUE_H_
