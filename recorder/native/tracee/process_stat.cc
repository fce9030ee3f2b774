#include "recorder/native/tracee/process_stat.h"

#include <elf.h>

#include <cstdio>
#include <cstring>

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

uint64_t AuxValue(std::string_view auxv, uint64_t type) {
  for (; auxv.size() >= sizeof(Elf64_auxv_t);
       auxv.remove_prefix(sizeof(Elf64_auxv_t))) {
    Elf64_auxv_t entry;
    std::memcpy(&entry, auxv.data(), sizeof(entry));
    if (entry.a_type == type) {
      return entry.a_un.a_val;
    }
  }
  return 0;
}

}  // namespace clew::recorder
