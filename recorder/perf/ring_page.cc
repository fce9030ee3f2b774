#include "recorder/perf/ring_page.h"

#include <algorithm>
#include <bit>

namespace clew::recorder::perf {

uint64_t LoadHead(const __u64& head) {
  return __atomic_load_n(&head, __ATOMIC_ACQUIRE);
}

void StoreTail(__u64& tail, uint64_t value) {
  __atomic_store_n(&tail, value, __ATOMIC_RELEASE);
}

RingSpans SpansOf(std::span<const std::byte> ring, uint64_t begin,
                  uint64_t size) {
  const uint64_t offset = begin & (ring.size() - 1);
  const uint64_t first = std::min<uint64_t>(size, ring.size() - offset);
  return {ring.subspan(offset, first), ring.first(size - first)};
}

Status CheckRingSize(uint64_t bytes, std::string_view what,
                     std::string_view name) {
  if (!std::has_single_bit(bytes) || bytes < sizeof(perf_event_header)) {
    return CorruptInput("{}: {} has {:#x} bytes, wanted a power of two", name,
                        what, bytes);
  }
  return {};
}

Result<std::span<const std::byte>> DataAreaOf(std::span<std::byte> mapping,
                                              std::string_view name) {
  if (mapping.size() < sizeof(perf_event_mmap_page)) {
    return CorruptInput("{}: the mapping has {:#x} bytes, its page needs {:#x}",
                        name, mapping.size(), sizeof(perf_event_mmap_page));
  }
  const auto* page =
      reinterpret_cast<const perf_event_mmap_page*>(mapping.data());
  const uint64_t offset_untrusted = page->data_offset;
  const uint64_t size_untrusted = page->data_size;
  if (offset_untrusted == 0) {
    return Unsupported(
        "{}: the kernel does not tell where the data ring begins "
        "(perf_event_mmap_page::data_offset is 0); Linux 4.1 or later does",
        name);
  }
  if (offset_untrusted < sizeof(perf_event_mmap_page) ||
      offset_untrusted > mapping.size() || offset_untrusted % 8 != 0 ||
      size_untrusted > mapping.size() - offset_untrusted) {
    return CorruptInput(
        "{}: data ring of {:#x} bytes at {:#x}, the mapping has {:#x}", name,
        size_untrusted, offset_untrusted, mapping.size());
  }
  CLEW_RETURN_IF_ERROR(CheckRingSize(size_untrusted, "data ring", name));
  return mapping.subspan(offset_untrusted, size_untrusted);
}

}  // namespace clew::recorder::perf
