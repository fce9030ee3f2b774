#ifndef CLEW_RECORDER_PERF_RING_PAGE_H_
#define CLEW_RECORDER_PERF_RING_PAGE_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace clew::recorder::perf {

// How the kernel treats a full ring.
enum class RingMode : uint8_t {
  kForward,    // it waits for the reader: what finds no room is dropped
  kOverwrite,  // it overwrites the oldest bytes; read while it is stopped
};

// The kernel's control page of a ring, which it changes while we look: heads
// are the kernel's, tails are ours.
//
// Source: linux/perf_event.h, struct perf_event_mmap_page: the reader of a head
// needs a read barrier behind it, the writer of a tail a full one before it.
// Acquire and release give the first; the second holds since no load of ring
// bytes may move behind a release.
uint64_t LoadHead(const __u64& head);
void StoreTail(__u64& tail, uint64_t value);

// Bytes [begin, begin + size) of an endless sequence that a ring keeps, as the
// one or two stretches of memory that hold them. REQUIRES: `ring` has a power
// of two of bytes, and `size` is at most that.
struct RingSpans {
  std::span<const std::byte> first;
  std::span<const std::byte> second;  // empty unless they wrap round
};
RingSpans SpansOf(std::span<const std::byte> ring, uint64_t begin,
                  uint64_t size);

// Returns the data area that the page of `mapping` announces. `name` ("core 3")
// is for messages.
//
// Fails with kCorruptInput if offset or size lie outside of the mapping or the
// size is not a power of two, and with kUnsupported if the kernel does not
// announce them.
[[nodiscard]] Result<std::span<const std::byte>> DataAreaOf(
    std::span<std::byte> mapping, std::string_view name);

// A ring's memory must be whole, and its size a power of two.
[[nodiscard]] Status CheckRingSize(uint64_t bytes, std::string_view what,
                                   std::string_view name);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_RING_PAGE_H_
