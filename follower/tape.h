#ifndef CLEW_FOLLOWER_TAPE_H_
#define CLEW_FOLLOWER_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/stream.h"

namespace clew::follower {

struct TapeLimits {
  // Items (blocks, input records) kept for all threads together. A run that
  // never goes back needs a few thousand; a search needs those between its
  // oldest choice and its newest instruction.
  uint64_t items_max = 64u << 20;
};

// What was recorded of every thread, with random access over a window: the
// pulled sources can only go forward, a search must go back. Positions count
// from the beginning of the recording and never change.
//
// Not thread-safe. Copies of a process share one tape.
class Tape {
 public:
  // Both sources are borrowed and must outlive the tape.
  Tape(StreamSource& streams, InputSource& inputs, TapeLimits limits = {});

  size_t thread_count() const { return tids_.size(); }
  Tid tid(size_t thread) const { return tids_[thread]; }
  // Returns the thread's index; nullopt for a tid that has no stream.
  std::optional<size_t> IndexOf(Tid tid) const;
  const std::vector<Slice>& slices() const { return streams_.slices(); }

  // Returns the item at `position` of the thread's stream; nullptr past its
  // end. The pointer holds until the next call. Fails with kLimit if more than
  // items_max would be kept, with kUnsupported if there is a gap or code that
  // is not 64-bit at or before `position`, and as the source does.
  [[nodiscard]] Result<const StreamBlock*> Block(size_t thread,
                                                 uint64_t position);
  // Returns whether Block(thread, position) has the block at hand.
  bool HasBlock(size_t thread, uint64_t position) const {
    const auto& window = threads_[thread].blocks;
    return position < window.first + window.items.size();
  }
  // Returns whether there is none there, nor behind, for all that is known.
  bool EndsBefore(size_t thread, uint64_t position) const {
    return threads_[thread].blocks.ended && !HasBlock(thread, position);
  }
  // Returns a time before which no block begins that is not at hand.
  TscTicks NotBefore(size_t thread) const {
    return streams_.NotBefore(tids_[thread]);
  }
  // Returns whether NotBefore(thread) is after `tick`.
  bool NoneUntil(size_t thread, double tick) const {
    double& bound = threads_[thread].not_before;
    if (bound <= tick) {
      bound = static_cast<double>(NotBefore(thread).as_int());
    }
    return bound > tick;
  }
  // Returns the thread's input record at `position`; nullptr past the last one.
  // Fails with kUnsupported if what came in there is unknown, with kLimit if
  // more than items_max would be kept, and as the source does.
  [[nodiscard]] Result<const InputRecord*> Input(size_t thread,
                                                 uint64_t position);

  // Drops the items before these positions, which will not be asked for again.
  // The last input before is kept: it tells what the thread did last.
  void Forget(size_t thread, uint64_t block_position, uint64_t input_position);

  // Returns whether no block was forgotten.
  bool HasBeginning() const;

 private:
  template <class Item>
  struct Window {
    std::deque<Item> items;
    uint64_t first = 0;  // position of items.front()
    bool ended = false;
  };
  struct ThreadTape {
    Window<StreamBlock> blocks;
    Window<InputRecord> inputs;
    std::optional<Gap> gap;         // at the position after the last block
    mutable double not_before = 0;  // it only grows, so an old one holds
  };
  Status CheckRoom() const;
  Status Append(size_t thread, const StreamBlock& block);

  StreamSource& streams_;
  InputSource& inputs_;
  TapeLimits limits_;
  std::vector<Tid> tids_;
  std::unordered_map<Tid, size_t> index_;
  std::vector<ThreadTape> threads_;
  uint64_t items_ = 0;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_TAPE_H_
