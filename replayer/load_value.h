#ifndef CLEW_REPLAYER_LOAD_VALUE_H_
#define CLEW_REPLAYER_LOAD_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "common/units.h"
#include "replayer/target.h"

namespace clew::replayer {

// Returns the value that the replayed process has at `addr` now; nullopt if not
// all of it is mapped. T is plain data, laid out as the process has it.
template <class T>
std::optional<T> LoadValue(const ReplayTarget& target, uint64_t addr) {
  std::array<std::byte, sizeof(T)> bytes = {};
  if (target.ReadMemory(TraceeAddr(addr), bytes) != bytes.size()) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_LOAD_VALUE_H_
