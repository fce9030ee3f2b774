#include "recorder/native/process_stat.h"

#include <cstdio>
#include <string>

namespace clew::recorder {

// The second field, the name, may hold anything, and ends with the last ')'.
Result<uint64_t> StatField(const std::string& stat, int field) {
  constexpr int kNameField = 2;
  size_t at = stat.rfind(')');
  for (int i = kNameField; at != std::string::npos && i < field; ++i) {
    at = stat.find(' ', at + 1);
  }
  unsigned long value = 0;
  if (at == std::string::npos ||
      sscanf(stat.c_str() + at, " %lu", &value) != 1 || value == 0) {
    return Unsupported("/proc/pid/stat tells no field {}: {:?}", field, stat);
  }
  return value;
}

}  // namespace clew::recorder
