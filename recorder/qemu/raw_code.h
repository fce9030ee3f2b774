#ifndef CLEW_RECORDER_QEMU_RAW_CODE_H_
#define CLEW_RECORDER_QEMU_RAW_CODE_H_

#include <cstdint>

namespace clew::recorder {

// The head of a record in the plugin's file of code that no file holds;
// `size_bytes` bytes of code follow. All are 64-bit little-endian numbers.
struct RawCode {
  uint64_t time = 0;  // ticks; from when on it holds
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  uint64_t replaces = 0;  // 1: other code was there before
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_RAW_CODE_H_
