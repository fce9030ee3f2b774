#ifndef CLEW_TESTS_COMMON_X86_GUARDED_BYTES_H_
#define CLEW_TESTS_COMMON_X86_GUARDED_BYTES_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/check.h"
#include "common/x86/page.h"

namespace clew::x86 {

// Bytes that end where nothing is readable: to read one more is a SIGSEGV.
class GuardedBytes {
 public:
  GuardedBytes() {
    void* pages = mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CLEW_CHECK(pages != MAP_FAILED, "mmap");
    pages_ = static_cast<uint8_t*>(pages);
    CLEW_CHECK(mprotect(pages_ + kPageBytes, kPageBytes, PROT_NONE) == 0,
               "mprotect");
  }
  ~GuardedBytes() { munmap(pages_, 2 * kPageBytes); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // A copy of `bytes`, until the next call. REQUIRES: at most a page.
  std::span<const uint8_t> Copy(std::span<const uint8_t> bytes) {
    uint8_t* const at = pages_ + kPageBytes - bytes.size();
    std::ranges::copy(bytes, at);
    return {at, bytes.size()};
  }

 private:
  uint8_t* pages_ = nullptr;
};

}  // namespace clew::x86

#endif  // CLEW_TESTS_COMMON_X86_GUARDED_BYTES_H_
