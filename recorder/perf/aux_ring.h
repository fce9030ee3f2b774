#ifndef CLEW_RECORDER_PERF_AUX_RING_H_
#define CLEW_RECORDER_PERF_AUX_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/result.h"
#include "recorder/perf/ring_page.h"

namespace clew::recorder::perf {

// Consecutive trace bytes, in the one or two stretches that hold them.
struct AuxRingPiece {
  uint64_t offset = 0;  // of the first byte among all that were delivered
  std::span<const std::byte> first;   // valid during OnAux
  std::span<const std::byte> second;  // empty unless they wrap round
  uint64_t size_bytes() const { return first.size() + second.size(); }
};

class AuxSink {
 public:
  virtual ~AuxSink() = default;
  [[nodiscard]] virtual Status OnAux(const AuxRingPiece& piece) = 0;
};

// The ring of trace bytes that goes with a DataRing. Allocates nothing but for
// errors. Not thread-safe; the kernel is the only other party.
//
// Full trace (kForward): the kernel stops tracing at a full ring and says so
// with TRUNCATED in an AUX record; AuxPiece::offset is the offset of those
// records. Snapshot (kOverwrite): the kernel goes round and round; offsets are
// counted from 0 over all snapshots.
class AuxRing {
 public:
  // `page` is the page of the event, with aux_offset and aux_size as they were
  // set for mmap; `area` is what that mmap gave. Both must outlive the ring.
  // Fails with kCorruptInput if sizes differ or are not a power of two.
  [[nodiscard]] static Result<AuxRing> Create(perf_event_mmap_page& page,
                                              std::span<const std::byte> area,
                                              RingMode mode, std::string name);

  // Full trace: gives `sink` the bytes up to the head of now, if any, in one
  // piece, and frees their room. After an error of `sink` they come again.
  // kCorruptInput: the head is further from the tail than the ring is long;
  // nothing is consumed.
  [[nodiscard]] Status Drain(AuxSink& sink);

  // Snapshot: gives `sink` what the ring holds, oldest first. Whether the
  // kernel has been round is not told; it has, if there is a byte that is not
  // zero behind the head. So a trace of which only zeros (PAD packets) are left
  // there may come without them.
  //
  // Every call gives the whole ring, bytes of the last snapshot included where
  // fewer were written since. REQUIRES: the event is disabled.
  [[nodiscard]] Status ReadSnapshot(AuxSink& sink);

  uint64_t delivered_bytes() const { return delivered_bytes_; }

 private:
  AuxRing(perf_event_mmap_page& page, std::span<const std::byte> area,
          RingMode mode, std::string name);
  Status Deliver(uint64_t begin, uint64_t size, AuxSink& sink);

  perf_event_mmap_page* page_;
  std::span<const std::byte> area_;
  RingMode mode_;
  std::string name_;
  uint64_t tail_;
  bool has_wrapped_ = false;
  uint64_t delivered_bytes_ = 0;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_AUX_RING_H_
