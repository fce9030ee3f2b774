#include "recorder/native/process_stat.h"

#include <cstdio>
#include <string>

namespace clew::recorder {

// The second field, the name, may hold anything, and ends with the last ')'.
Result<uint64_t> StatField(const TracedProcess& process, int field) {
  constexpr int kNameField = 2;
  const std::string text = process.ProcText("stat");
  size_t at = text.rfind(')');
  for (int i = kNameField; at != std::string::npos && i < field; ++i) {
    at = text.find(' ', at + 1);
  }
  unsigned long value = 0;
  if (at == std::string::npos ||
      sscanf(text.c_str() + at, " %lu", &value) != 1 || value == 0) {
    return Unsupported("/proc/{}/stat tells no field {}: {:?}",
                       process.process(), field, text);
  }
  return value;
}

}  // namespace clew::recorder
