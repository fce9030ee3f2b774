#include "recorder/qemu/reservation.h"

#include <asm/unistd_64.h>

#include <cstdio>

#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {
namespace {

constexpr double kGiB = 1u << 30;
// At the end of a recording each page of each mapping is looked at, which takes
// about a microsecond.
constexpr uint64_t kMappingBytesMax = uint64_t{128} << 30;
constexpr uint64_t kLargeMappingBytes = uint64_t{1} << 30;
// sizeof(PageDesc) of QEMU 7.2.
constexpr uint64_t kDescriptionBytes = 24;
// What descriptions may take: one part in so many of what is available.
constexpr uint64_t kShare = 4;

uint64_t MappedBytes(uint64_t number, const std::array<uint64_t, 6>& args) {
  switch (number) {
    case __NR_mmap:
      return args[1];
    case __NR_mremap:
      return args[2];
    default:
      return 0;
  }
}

}  // namespace

uint64_t AvailableHostBytes() {
  FILE* file = fopen("/proc/meminfo", "re");
  if (file == nullptr) {
    return UINT64_MAX;
  }
  char line[128];
  unsigned long kib = 0;
  bool found = false;
  while (!found && fgets(line, sizeof(line), file) != nullptr) {
    found = sscanf(line, "MemAvailable: %lu kB", &kib) == 1;
  }
  (void)fclose(file);  // read only
  return found ? uint64_t{kib} << 10 : UINT64_MAX;
}

Status CheckReservation(uint64_t number, const std::array<uint64_t, 6>& args,
                        const std::function<uint64_t()>& available_bytes) {
  const uint64_t mapped = MappedBytes(number, args);
  if (mapped < kLargeMappingBytes) {
    return {};
  }
  const uint64_t cost = mapped / kPageBytes * kDescriptionBytes;
  const uint64_t borne = available_bytes() / kShare;
  if (mapped <= kMappingBytesMax && cost <= borne) {
    return {};
  }
  return Unsupported(
      "the program maps {:.1f} GiB at once: QEMU describes each page of it, "
      "also where it is only reserved, which takes {:.1f} GiB of this host's "
      "memory; at most {:.0f} GiB, and {:.1f} GiB for the description, are "
      "borne here; sanitizers and some databases reserve so much: record a "
      "build without, or set the program's limit lower",
      static_cast<double>(mapped) / kGiB, static_cast<double>(cost) / kGiB,
      static_cast<double>(kMappingBytesMax) / kGiB,
      static_cast<double>(borne) / kGiB);
}

}  // namespace clew::recorder
