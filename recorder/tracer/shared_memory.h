#ifndef CLEW_RECORDER_TRACER_SHARED_MEMORY_H_
#define CLEW_RECORDER_TRACER_SHARED_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/os/fd.h"
#include "common/result.h"
#include "recorder/tracer/shared_layout.h"

namespace clew::tracer {

// The recorder's side of the memory that it shares with the traced processes of
// a recording. Moves. What the accessors return is as the processes left it:
// the numbers in it are to be checked.
class SharedMemory {
 public:
  // Memory of this process alone, with nothing in it. kSystem: the kernel
  // refuses it.
  [[nodiscard]] static Result<SharedMemory> Create();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // From here on it is that of a file, which is empty and in memory, and has
  // the image of the runtime at kImageAt besides. What the header and the rules
  // say stays.
  [[nodiscard]] Status MoveTo(const Fd& file);
  SharedHeader& header() { return *At<SharedHeader>(0); }
  const SharedHeader& header() const { return *At<SharedHeader>(0); }
  // As many as are in use; the first one is none.
  std::span<const Fragment> fragments() const {
    return {At<Fragment>(kFragmentsAt),
            std::min(header().fragments.load(), kFragmentsMax)};
  }
  std::span<const Edge> edges() const {
    return {At<Edge>(kEdgesAt), std::min(header().edges.load(), kEdgesMax)};
  }
  std::span<const Space> spaces() const;
  // Of a fragment; empty if it says what cannot be. A copy of it: the process
  // may change it at any moment.
  std::span<const uint8_t> code(Fragment fragment) const {
    const uint32_t at = fragment.code_at;
    const uint32_t bytes = fragment.code_bytes;
    if (at > kCodeBytesMax || bytes > kCodeBytesMax - at) {
      return {};
    }
    return {At<uint8_t>(kCodeAt + at), bytes};
  }
  // Returns whether all code was forgotten since it had been so many times, and
  // sets those to what they are now: numbers of before mean something else.
  bool HasForgotten(uint32_t& times) const {
    const uint32_t now = header().forgotten.load();
    return std::exchange(times, now) != now;
  }
  InputRules& rules() { return *At<InputRules>(kRulesAt); }
  // REQUIRES: number < kThreadsMax.
  ThreadSlot& slot(uint32_t number) {
    return *At<ThreadSlot>(kThreadsAt + number * kSlotBytes);
  }
  // As many slots as were ever used.
  uint32_t slot_count() const;
  // Of a thread that does not run any more: the records that are in no batch.
  std::span<const LogRecord> Unfinished(const ThreadSlot& slot) const;
  // No thread waits for room in its queue, or parks, from here on: what it logs
  // is lost.
  void EndReading();
  // Waits for a thread to have something urgent to do for the recorder, a
  // millisecond at most. Returns whether one may have.
  bool Sleep();
  // Lets another thread have the slot.
  static void Free(ThreadSlot& slot);

  // Hands the batches of a thread's queue to `use` (Status(const Batch&)) until
  // it fails, and frees them all.
  template <class Use>
  [[nodiscard]] static Status TakeBatches(ThreadSlot& slot, Use use) {
    const uint32_t written = slot.batches_written.load();
    const uint32_t first = slot.batches_read.load();
    Status status;
    for (uint32_t read = first; status && read != written; ++read) {
      status = use(slot.batches[read % kBatches]);
    }
    if (first != written) {
      FreeBatches(slot, written);
    }
    return status;
  }
  // Says that the batches of a thread's queue were read up to `read`, for whose
  // room it may wait.
  static void FreeBatches(ThreadSlot& slot, uint32_t read);

  // Whether the thread is parked, and waits for an order.
  static bool IsParked(const ThreadSlot& slot) {
    return slot.order.load(std::memory_order_acquire) == ParkOrder::kWait;
  }
  // REQUIRES: IsParked.
  static void Order(ThreadSlot& slot, ParkOrder order);

  // Why the runtime ended the program; empty if it did not.
  std::string FaultText() const;

 private:
  explicit SharedMemory(uint8_t* bytes) : bytes_(bytes) {}
  template <class T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(bytes_ + offset);
  }

  uint8_t* bytes_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_SHARED_MEMORY_H_
