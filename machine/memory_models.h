#ifndef CLEW_MACHINE_MEMORY_MODELS_H_
#define CLEW_MACHINE_MEMORY_MODELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/schedule.h"
#include "machine/store_buffer.h"

// The memory models that the product has (docs/design/memory_models.md):
//
//   sc    sequential consistency: a store is seen by all when it retires
//   tso   what x86 promises: one queue for each thread
//   pso   a queue for each place: stores to different places may be seen in
//         either order, those to one place in the order of the program
//
// A place is an aligned word of 8 bytes. A store that lies in two places waits
// for what is older in both, and is seen as one.

namespace clew::machine {

// Buffers are finite, as those of processors are (Golden Cove has 112 entries).
// A store that finds no room makes the oldest leave.
inline constexpr size_t kWaitingStoresMax = 128;
inline constexpr uint32_t kPsoQueues = 16;
// Longer stores wait in parts of this size (FXSAVE, REP MOVS).
inline constexpr size_t kWaitingBytesMax = 16;

// The buffer of one thread under TSO (one queue) or PSO.
//
// Under PSO a store joins the queue of the youngest waiting store that it
// shares a place with, if that one is the last there, or else the first queue
// that is empty; so which queue a store is in follows from the run, and a
// schedule may name it.
class StoreQueues final : public StoreBuffer {
 public:
  explicit StoreQueues(uint32_t queues) : queues_(queues) {}

  std::unique_ptr<StoreBuffer> Clone() const override;
  void Store(const WaitingStore& store, std::span<const std::byte> bytes,
             Memory& memory) override;
  void Forward(uint64_t addr, std::span<std::byte> bytes) const override;
  std::optional<WaitingStore> Oldest(uint32_t queue) const override;
  bool MayLeave(uint32_t queue) const override;
  void Flush(uint32_t queue, Memory& memory) override;
  std::optional<uint32_t> OldestQueue() const override;
  bool Full() const override;
  bool Waits(const WaitingStore& store) const override;
  uint64_t Digest() const override;

 private:
  struct Entry {
    WaitingStore store;
    uint32_t queue = 0;
    std::array<std::byte, kWaitingBytesMax> bytes = {};
  };
  using Entries = std::vector<Entry>;
  Entries::const_iterator OldestIn(uint32_t queue) const;
  bool HasFree() const;
  uint32_t QueueFor(const WaitingStore& store, Memory& memory);
  void Append(const WaitingStore& store, std::span<const std::byte> bytes,
              Memory& memory);

  uint32_t queues_;
  Entries entries_;  // in the order of the program
};

// Returns the model; nullptr for kSc, which needs none. It lives as long as the
// program.
const MemoryModel* MemoryModelOf(MemoryModelKind kind);

// "sc", "tso", "pso".
std::string_view NameOf(MemoryModelKind kind);
// Returns nullopt for other names.
std::optional<MemoryModelKind> MemoryModelNamed(std::string_view name);

}  // namespace clew::machine

#endif  // CLEW_MACHINE_MEMORY_MODELS_H_
