#include "machine/memory_models.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "common/digest.h"

namespace clew::machine {
namespace {

constexpr uint64_t kPlaceBytes = 8;

// Whether the stores lie in one place, at least in part.
bool SharePlace(const WaitingStore& a, const WaitingStore& b) {
  const auto last = [](const WaitingStore& store) {
    return (store.addr + store.size_bytes - 1) / kPlaceBytes;
  };
  return a.addr / kPlaceBytes <= last(b) && b.addr / kPlaceBytes <= last(a);
}

class QueuesModel final : public MemoryModel {
 public:
  QueuesModel(MemoryModelKind kind, uint32_t queues)
      : kind_(kind), queues_(queues) {}
  std::unique_ptr<StoreBuffer> NewBuffer() const override {
    return std::make_unique<StoreQueues>(queues_);
  }
  uint32_t queues() const override { return queues_; }
  MemoryModelKind kind() const override { return kind_; }

 private:
  MemoryModelKind kind_;
  uint32_t queues_;
};

}  // namespace

std::unique_ptr<StoreBuffer> StoreQueues::Clone() const {
  return std::make_unique<StoreQueues>(*this);
}

void StoreQueues::Store(const WaitingStore& store,
                        std::span<const std::byte> bytes, Memory& memory) {
  for (size_t done = 0; done < bytes.size(); done += kWaitingBytesMax) {
    const size_t size = std::min(kWaitingBytesMax, bytes.size() - done);
    Append({.insn = store.insn,
            .addr = store.addr + done,
            .size_bytes = static_cast<uint32_t>(size)},
           bytes.subspan(done, size), memory);
  }
}

void StoreQueues::Append(const WaitingStore& store,
                         std::span<const std::byte> bytes, Memory& memory) {
  if (entries_.size() == kWaitingStoresMax) {
    Flush(entries_.front().queue, memory);
  }
  Entry entry = {.store = store, .queue = QueueFor(store, memory)};
  std::ranges::copy(bytes, entry.bytes.begin());
  entries_.push_back(entry);
}

uint32_t StoreQueues::QueueFor(const WaitingStore& store, Memory& memory) {
  if (queues_ == 1) {
    return 0;
  }
  uint64_t longer = 0;  // queues whose last store was looked at
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (SharePlace(entry->store, store)) {
      if ((longer >> entry->queue & 1) == 0) {
        return entry->queue;
      }
      break;
    }
    longer |= uint64_t{1} << entry->queue;
  }
  while (!HasFree()) {
    Flush(entries_.front().queue, memory);
  }
  uint32_t queue = 0;
  while (OldestIn(queue) != entries_.end()) {
    ++queue;
  }
  return queue;
}

void StoreQueues::Forward(uint64_t addr, std::span<std::byte> bytes) const {
  const uint64_t end = addr + bytes.size();
  for (const auto& [store, queue, stored] : entries_) {
    const uint64_t first = std::max(addr, store.addr);
    const uint64_t last = std::min(end, store.addr + store.size_bytes);
    if (first < last) {
      std::memcpy(&bytes[first - addr], &stored[first - store.addr],
                  last - first);
    }
  }
}

StoreQueues::Entries::const_iterator StoreQueues::OldestIn(
    uint32_t queue) const {
  return std::ranges::find(entries_, queue, &Entry::queue);
}

bool StoreQueues::HasFree() const {
  uint64_t used = 0;
  for (const Entry& entry : entries_) {
    used |= uint64_t{1} << entry.queue;
  }
  return used != (uint64_t{1} << queues_) - 1;
}

std::optional<WaitingStore> StoreQueues::Oldest(uint32_t queue) const {
  const auto entry = OldestIn(queue);
  return entry == entries_.end() ? std::nullopt : std::optional(entry->store);
}

bool StoreQueues::MayLeave(uint32_t queue) const {
  const auto entry = OldestIn(queue);
  return entry != entries_.end() &&
         (queues_ == 1 ||
          std::none_of(entries_.begin(), entry, [&](const Entry& older) {
            return SharePlace(older.store, entry->store);
          }));
}

void StoreQueues::Flush(uint32_t queue, Memory& memory) {
  const auto entry = OldestIn(queue);
  CLEW_CHECK(MayLeave(queue), "no store of queue {} may leave", queue);
  // The protections permitted it when it was made; the kernel, which changes
  // them, finds the buffer of its caller empty, not those of others.
  memory.Poke(entry->store.addr,
              std::span(entry->bytes).first(entry->store.size_bytes));
  entries_.erase(entry);
}

std::optional<uint32_t> StoreQueues::OldestQueue() const {
  return entries_.empty() ? std::nullopt
                          : std::optional(entries_.front().queue);
}

bool StoreQueues::Full() const {
  return entries_.size() == kWaitingStoresMax || (queues_ > 1 && !HasFree());
}

bool StoreQueues::Waits(const WaitingStore& store) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.store.insn == store.insn && entry.store.addr == store.addr;
  });
}

uint64_t StoreQueues::Digest() const {
  if (entries_.empty()) {
    return 0;
  }
  uint64_t digest = kEmptyDigest;
  for (const auto& [store, queue, bytes] : entries_) {
    digest = clew::Digest(std::span(bytes).first(store.size_bytes),
                          digest ^ MixBits(store.addr ^ MixBits(store.insn)));
  }
  return digest;
}

const MemoryModel* MemoryModelOf(MemoryModelKind kind) {
  static const QueuesModel tso(MemoryModelKind::kTso, 1);
  static const QueuesModel pso(MemoryModelKind::kPso, kPsoQueues);
  switch (kind) {
    case MemoryModelKind::kTso:
      return &tso;
    case MemoryModelKind::kPso:
      return &pso;
    case MemoryModelKind::kSc:
      break;
  }
  return nullptr;
}

std::string_view NameOf(MemoryModelKind kind) {
  switch (kind) {
    case MemoryModelKind::kTso:
      return "tso";
    case MemoryModelKind::kPso:
      return "pso";
    case MemoryModelKind::kSc:
      break;
  }
  return "sc";
}

std::optional<MemoryModelKind> MemoryModelNamed(std::string_view name) {
  for (const auto kind :
       {MemoryModelKind::kSc, MemoryModelKind::kTso, MemoryModelKind::kPso}) {
    if (name == NameOf(kind)) {
      return kind;
    }
  }
  return std::nullopt;
}

}  // namespace clew::machine
