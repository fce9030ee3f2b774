#ifndef CLEW_COMMON_LOAD_AT_H_
#define CLEW_COMMON_LOAD_AT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace clew {

// Copies a `T` from `offset` on. Returns false, and leaves `value` as it was,
// if it does not lie within `bytes`. For bytes whose faults are not reported;
// ByteReader reports them.
template <class T>
bool LoadAt(std::span<const std::byte> bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) {
    return false;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

}  // namespace clew

#endif  // CLEW_COMMON_LOAD_AT_H_
