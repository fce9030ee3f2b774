#ifndef CLEW_TESTS_SUPPORT_OWN_MEMORY_H_
#define CLEW_TESTS_SUPPORT_OWN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#include "common/check.h"

namespace clew::test {

// Bytes of the test program's own memory. Not by a plain copy: AddressSanitizer
// forbids reading the gaps it leaves between variables.
inline std::vector<std::byte> ReadOwn(uint64_t addr, size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  std::ifstream memory("/proc/self/mem", std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(addr));
  memory.read(reinterpret_cast<char*>(bytes.data()),
              static_cast<std::streamsize>(size_bytes));
  CLEW_CHECK(memory.good(), "cannot read {:#x}", addr);
  return bytes;
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_OWN_MEMORY_H_
