#ifndef CLEW_MACHINE_STORE_BUFFER_H_
#define CLEW_MACHINE_STORE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/schedule.h"
#include "machine/memory.h"

// The seam for memory models.
//
// Under sequential consistency a store is in memory when its instruction has
// retired. Other models (x86's TSO, PSO) put a buffer between a thread and the
// memory: the thread itself reads what waits there, others do not, until the
// buffer takes a step of its own. So who may take a step is a thread or the
// buffer of one, and an order of a run names both (common/schedule.h).
//
//   thread 0 --stores--> buffer 0 --\                 Run: a thread's step
//            <--loads---------------- memory          Flush: a queue's step
//   thread 1 --stores--> buffer 1 --/                 Drain: all, at a fence
//
// A buffer has one queue or several; what waits in different queues may become
// visible in either order. Each queue is an actor of its own.
//
// Whoever runs a process sees threads and buffers through follower::Process
// alone; a process without a model has no buffers, and nothing is asked of one.

namespace clew::machine {

// A store that no other thread sees yet.
struct WaitingStore {
  uint64_t insn = 0;  // instructions that the thread had retired before its own
  uint64_t addr = 0;
  uint32_t size_bytes = 0;
};

// Where the stores of one thread wait. Has no part in what is atomic: locked
// instructions, fences and the kernel find it drained.
class StoreBuffer {
 public:
  virtual ~StoreBuffer() = default;
  // Returns one that holds the same, for a checkpoint.
  virtual std::unique_ptr<StoreBuffer> Clone() const = 0;

  // Takes a store that the protections of `memory` permit: keeps it, or lets it
  // pass.
  virtual void Store(const WaitingStore& store,
                     std::span<const std::byte> bytes, Memory& memory) = 0;
  // Puts what waits over `bytes`, which are what memory has from `addr` on.
  virtual void Forward(uint64_t addr, std::span<std::byte> bytes) const = 0;
  // Returns the store of a queue that leaves it next; nullopt: none waits
  // there. REQUIRES for all that take one: queue < MemoryModel::queues().
  virtual std::optional<WaitingStore> Oldest(uint32_t queue) const = 0;
  // Returns whether that store may leave now: a store of another queue may have
  // to be seen before it. False if none waits.
  virtual bool MayLeave(uint32_t queue) const {
    return Oldest(queue).has_value();
  }
  // Lets that store leave. REQUIRES: it may.
  virtual void Flush(uint32_t queue, Memory& memory) = 0;
  // Returns the queue of the store that came first, which may always leave;
  // nullopt: none waits.
  virtual std::optional<uint32_t> OldestQueue() const = 0;
  // Returns whether a further store may find no room and make an older one
  // leave.
  virtual bool Full() const { return false; }
  // Returns a digest of what waits, equal for equal contents; 0 for none.
  virtual uint64_t Digest() const = 0;

  // Returns whether the store of that instruction to that address waits.
  virtual bool Waits(const WaitingStore& /*store*/) const { return false; }

  bool Empty() const { return !OldestQueue(); }
  // Lets everything leave, in the order in which it came.
  void Drain(Memory& memory) {
    while (const auto queue = OldestQueue()) {
      Flush(*queue, memory);
    }
  }
};

// Which stores wait, and in what order they leave.
class MemoryModel {
 public:
  virtual ~MemoryModel() = default;
  // Returns the buffer of a thread, empty.
  virtual std::unique_ptr<StoreBuffer> NewBuffer() const = 0;
  // Returns how many queues each of its buffers has.
  virtual uint32_t queues() const { return 1; }
  // Returns what a schedule calls it: kSc, if no order under it needs it.
  virtual MemoryModelKind kind() const { return MemoryModelKind::kSc; }
};

// A buffer that is copied with what it is part of; none under sequential
// consistency.
class HeldBuffer {
 public:
  HeldBuffer() = default;
  explicit HeldBuffer(std::unique_ptr<StoreBuffer> buffer)
      : buffer_(std::move(buffer)) {}
  HeldBuffer(const HeldBuffer& other) : buffer_(Copy(other)) {}
  HeldBuffer(HeldBuffer&&) noexcept = default;
  HeldBuffer& operator=(const HeldBuffer& other) {
    buffer_ = Copy(other);
    return *this;
  }
  HeldBuffer& operator=(HeldBuffer&&) noexcept = default;
  ~HeldBuffer() = default;

  StoreBuffer* get() const { return buffer_.get(); }

 private:
  static std::unique_ptr<StoreBuffer> Copy(const HeldBuffer& other) {
    return other.buffer_ == nullptr ? nullptr : other.buffer_->Clone();
  }
  std::unique_ptr<StoreBuffer> buffer_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_STORE_BUFFER_H_
