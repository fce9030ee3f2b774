#ifndef CLEW_MACHINE_STORE_BUFFER_H_
#define CLEW_MACHINE_STORE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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
//            <--loads---------------- memory          Flush: a buffer's step
//   thread 1 --stores--> buffer 1 --/                 Drain: all, at a fence
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
  // Returns the store that leaves next; nullopt: none waits.
  virtual std::optional<WaitingStore> Oldest() const = 0;
  // Lets that store leave. REQUIRES: one waits.
  virtual void Flush(Memory& memory) = 0;
  // Returns a digest of what waits, equal for equal contents; 0 for none.
  virtual uint64_t Digest() const = 0;

  // Lets everything leave.
  void Drain(Memory& memory) {
    while (Oldest()) {
      Flush(memory);
    }
  }
};

// Which stores wait, and in what order they leave.
class MemoryModel {
 public:
  virtual ~MemoryModel() = default;
  // Returns the buffer of a thread, empty.
  virtual std::unique_ptr<StoreBuffer> NewBuffer() const = 0;
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
