#include "recorder/native/robust_list.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace clew::recorder {
namespace {

constexpr uint64_t kInherits = 1;  // of an entry: a lock with inheritance

// A circle through the head. Its entries stand in the locks, the word
// `futex_offset` behind each.
class RobustList {
 public:
  RobustList(Tid thread, const GuestMemory& memory)
      : thread_(thread), memory_(memory) {
    size_t size = 0;
    void* head = nullptr;
    if (syscall(SYS_get_robust_list, thread.as_int(), &head, &size) == 0) {
      head_ = reinterpret_cast<uint64_t>(head);
    }
  }

  std::vector<MemoryRange> Held() {
    const auto head =
        head_ == 0 ? std::nullopt : memory_.Load<robust_list_head>(head_);
    if (!head) {
      return {};
    }
    const uint64_t pending = AddrOf(head->list_op_pending);
    uint64_t entry = AddrOf(head->list.next);
    for (int i = 0; i < ROBUST_LIST_LIMIT && entry != head_; ++i) {
      const auto next = memory_.Load<uint64_t>(entry);
      if (entry != pending) {
        AddIfHeld(entry + static_cast<uint64_t>(head->futex_offset));
      }
      if (!next) {
        break;
      }
      entry = *next & ~kInherits;
    }
    if (pending != 0) {
      AddIfHeld(pending + static_cast<uint64_t>(head->futex_offset));
    }
    return std::move(held_);
  }

 private:
  static uint64_t AddrOf(const robust_list* entry) {
    return reinterpret_cast<uint64_t>(entry) & ~kInherits;
  }
  void AddIfHeld(uint64_t word) {
    const auto value = memory_.Load<uint32_t>(word);
    if (value &&
        (*value & FUTEX_TID_MASK) == static_cast<uint32_t>(thread_.as_int())) {
      held_.push_back({word, sizeof(uint32_t)});
    }
  }

  Tid thread_;
  const GuestMemory& memory_;
  uint64_t head_ = 0;
  std::vector<MemoryRange> held_;
};

}  // namespace

std::vector<MemoryRange> HeldRobustLocks(Tid thread,
                                         const GuestMemory& memory) {
  return RobustList(thread, memory).Held();
}

}  // namespace clew::recorder
