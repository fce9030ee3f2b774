#ifndef CLEW_COMMON_LINUX_ROBUST_LIST_H_
#define CLEW_COMMON_LINUX_ROBUST_LIST_H_

// Locks that the kernel gives back when the thread that holds them ends:
// set_robust_list(2), and exit_robust_list in kernel/futex/core.c.

#include <linux/futex.h>

#include <cstdint>

namespace clew {

// Calls use(address, value) with the word of each lock that the thread `tid`
// holds by its list, whose head is at `head` (0: there is no list).
// load(address, to) reads a structure of the thread's memory, and returns
// whether it could.
template <class Load, class Use>
void ForHeldRobustLocks(uint64_t head, uint32_t tid, Load load, Use use) {
  // The list is a circle through its head. Its entries stand in the locks, the
  // word `futex_offset` behind each. The lowest bit tells locks with
  // inheritance of priority.
  constexpr uint64_t kInherits = 1;
  const auto addr_of = [](const robust_list* entry) {
    return reinterpret_cast<uint64_t>(entry) & ~kInherits;
  };
  robust_list_head list = {};
  if (head == 0 || !load(head, list)) {
    return;
  }
  const auto use_if_held = [&](uint64_t entry) {
    const uint64_t word = entry + static_cast<uint64_t>(list.futex_offset);
    uint32_t value = 0;
    if (load(word, value) && (value & FUTEX_TID_MASK) == tid) {
      use(word, value);
    }
  };
  const uint64_t pending = addr_of(list.list_op_pending);
  uint64_t entry = addr_of(list.list.next);
  for (int i = 0; i < ROBUST_LIST_LIMIT && entry != head; ++i) {
    robust_list next = {};
    const bool is_read = load(entry, next);
    if (entry != pending) {
      use_if_held(entry);
    }
    if (!is_read) {
      break;
    }
    entry = addr_of(next.next);
  }
  if (pending != 0) {
    use_if_held(pending);
  }
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_ROBUST_LIST_H_
