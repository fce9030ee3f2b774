#include "recorder/native/tracee/robust_list.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "common/linux/robust_list.h"

namespace clew::recorder {

std::vector<MemoryRange> HeldRobustLocks(Tid thread,
                                         const GuestMemory& memory) {
  size_t size = 0;
  void* head = nullptr;
  if (syscall(SYS_get_robust_list, thread.as_int(), &head, &size) != 0) {
    return {};
  }
  std::vector<MemoryRange> held;
  ForHeldRobustLocks(
      reinterpret_cast<uint64_t>(head), static_cast<uint32_t>(thread.as_int()),
      [&](uint64_t addr, auto& to) {
        return memory.Read(addr, &to, sizeof(to));
      },
      [&](uint64_t word, uint32_t value) {
        held.push_back({word, sizeof(value)});
      });
  return held;
}

}  // namespace clew::recorder
