#ifndef CLEW_TESTS_RECORDER_PERF_FAKE_RING_H_
#define CLEW_TESTS_RECORDER_PERF_FAKE_RING_H_

#include <linux/perf_event.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "recorder/perf/ring_page.h"

namespace clew::recorder::perf {

// Page, data ring and AUX ring in shared memory, and the kernel's side of
// them: what kernel/events/ring_buffer.c does with heads, tails, LOST and
// TRUNCATED, one writer. Every record ends with a sample_id whose time is its
// number, counted from 1 over all records that were tried.
//
// Output, OutputAux and FlushLost are for the writer's thread, the rest for the
// reader's unless it says "any".
class FakeRing {
 public:
  // Sizes are powers of two; aux_bytes may be 0.
  FakeRing(size_t data_bytes, size_t aux_bytes, RingMode mode);
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;
  ~FakeRing();

  std::span<std::byte> mapping() { return {memory_, kPageBytes + data_bytes_}; }
  std::span<const std::byte> aux_area() const {
    return {memory_ + kPageBytes + data_bytes_, aux_bytes_};
  }
  perf_event_mmap_page& page() {
    return *reinterpret_cast<perf_event_mmap_page*>(memory_);
  }
  size_t data_bytes() const { return data_bytes_; }
  size_t aux_bytes() const { return aux_bytes_; }

  // Writes header, `body` and a sample_id; false if it was dropped, to be told
  // by a LOST ahead of the next record.
  bool Output(uint32_t type, std::span<const std::byte> body);
  // Traces `size` bytes, of which byte i since the beginning of all tracing is
  // AuxByte(i). What does not fit is not written, the AUX record says
  // TRUNCATED, and tracing stays off until the reader calls EnableAux.
  // `flags`: more PERF_AUX_FLAG_... to set.
  void OutputAux(uint64_t size, uint64_t flags);
  bool aux_enabled() const { return aux_enabled_.load(); }  // any
  static std::byte AuxByte(uint64_t i) {
    return static_cast<std::byte>((i * 0x9e3779b97f4a7c15u) >> 56);
  }
  // Room for a record of `body_bytes` now, and a LOST before it.
  bool HasRoom(size_t body_bytes) const;

  void EnableAux() { aux_enabled_ = true; }
  void SetPaused(bool paused) { paused_ = paused; }  // IOC_PAUSE_OUTPUT
  // What membarrier does for the real ring: no Output that began before a
  // pause is still at work afterwards.
  void WaitForWriter() const;

  // What the writer did; read them when it has ended.
  uint64_t tried() const { return tried_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t untold() const { return lost_; }  // dropped, no LOST told of it yet
  uint64_t written_bytes() const { return written_bytes_; }
  uint64_t aux_written_bytes() const { return aux_head_; }
  // For each stretch of missing trace: offset in the ring, bytes.
  struct AuxMissing {
    uint64_t offset;
    uint64_t bytes;
  };
  const std::vector<AuxMissing>& aux_missing() const { return aux_missing_; }
  uint64_t aux_record_drops() const { return aux_record_drops_; }

 private:
  static constexpr size_t kPageBytes = 4096;
  bool OutputUnlessPaused(uint32_t type, std::span<const std::byte> body);
  bool HasRoomFor(uint64_t bytes) const;
  void Put(uint64_t& at, std::span<const std::byte> bytes);
  void PutRecord(uint64_t& at, uint32_t type, std::span<const std::byte> body);
  void PutAux(uint64_t size);

  std::byte* memory_;
  size_t data_bytes_;
  size_t aux_bytes_;
  RingMode mode_;
  uint64_t head_ = 0;
  uint64_t aux_head_ = 0;
  uint64_t aux_traced_ = 0;  // bytes, those that did not fit included
  uint64_t lost_ = 0;
  uint64_t tried_ = 0;
  uint64_t dropped_ = 0;
  uint64_t written_bytes_ = 0;
  uint64_t aux_record_drops_ = 0;
  std::vector<AuxMissing> aux_missing_;
  std::atomic<bool> paused_ = false;
  std::atomic<bool> writing_ = false;
  std::atomic<bool> aux_enabled_ = true;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_TESTS_RECORDER_PERF_FAKE_RING_H_
