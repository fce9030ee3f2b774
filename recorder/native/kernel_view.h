#ifndef CLEW_RECORDER_NATIVE_KERNEL_VIEW_H_
#define CLEW_RECORDER_NATIVE_KERNEL_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// What the kernel finds in the program's memory, while it takes a call, in the
// place of what the program wrote there. No thread of the program runs until
// Restore.
class KernelView {
 public:
  // Returns false, with nothing shown, if the memory cannot be written.
  bool Show(const GuestMemory& memory, uint64_t addr, const void* from,
            size_t count) {
    std::vector<std::byte> was(count);
    if (!memory.Read(addr, was.data(), count) ||
        !memory.Write(addr, from, count)) {
      return false;
    }
    shown_.push_back({addr, std::move(was)});
    return true;
  }
  void Restore(const GuestMemory& memory) {
    for (const Shown& shown : std::exchange(shown_, {})) {
      // It could be written before.
      (void)memory.Write(shown.addr, shown.was.data(), shown.was.size());
    }
  }

 private:
  struct Shown {
    uint64_t addr = 0;
    std::vector<std::byte> was;
  };
  std::vector<Shown> shown_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_KERNEL_VIEW_H_
