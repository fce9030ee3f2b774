#include "tests/recorder/perf/fake_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "common/check.h"
#include "recorder/perf/events.h"

namespace clew::recorder::perf {
namespace {

constexpr uint64_t kHeaderBytes = sizeof(perf_event_header);
constexpr uint64_t kLostBytes = kHeaderBytes + 16 + bundle::kSampleIdBytes;

std::byte* MapShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CLEW_CHECK(memory != MAP_FAILED, "no {} bytes of shared memory", bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace

FakeRing::FakeRing(size_t data_bytes, size_t aux_bytes, RingMode mode)
    : memory_(MapShared(kPageBytes + data_bytes + aux_bytes)),
      data_bytes_(data_bytes),
      aux_bytes_(aux_bytes),
      mode_(mode) {
  page().data_offset = kPageBytes;
  page().data_size = data_bytes;
  page().aux_offset = kPageBytes + data_bytes;
  page().aux_size = aux_bytes;
}

FakeRing::~FakeRing() {
  munmap(memory_, kPageBytes + data_bytes_ + aux_bytes_);
}

// As CIRC_SPACE has it, one byte stays free, so that full differs from empty.
bool FakeRing::HasRoomFor(uint64_t bytes) const {
  const auto& page = *reinterpret_cast<perf_event_mmap_page*>(memory_);
  const uint64_t tail = __atomic_load_n(&page.data_tail, __ATOMIC_ACQUIRE);
  return bytes < data_bytes_ - (head_ - tail);
}

bool FakeRing::HasRoom(size_t body_bytes) const {
  return HasRoomFor(kHeaderBytes + body_bytes + bundle::kSampleIdBytes +
                    kLostBytes);
}

void FakeRing::Put(uint64_t& at, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return;  // memcpy takes no null pointer
  }
  std::byte* ring = memory_ + kPageBytes;
  const uint64_t offset = at & (data_bytes_ - 1);
  const size_t first = std::min<size_t>(bytes.size(), data_bytes_ - offset);
  std::memcpy(ring + offset, bytes.data(), first);
  std::memcpy(ring, bytes.data() + first, bytes.size() - first);
  at += bytes.size();
}

void FakeRing::PutRecord(uint64_t& at, uint32_t type,
                         std::span<const std::byte> body) {
  perf_event_header header = {};
  header.type = type;
  header.size = static_cast<uint16_t>(kHeaderBytes + body.size() +
                                      bundle::kSampleIdBytes);
  const std::array<uint64_t, 4> sample_id = {0, tried_, 0, 1};
  Put(at, std::as_bytes(std::span(&header, 1)));
  Put(at, body);
  Put(at, std::as_bytes(std::span(sample_id)));
}

bool FakeRing::OutputUnlessPaused(uint32_t type,
                                  std::span<const std::byte> body) {
  const uint64_t size = kHeaderBytes + body.size() + bundle::kSampleIdBytes +
                        (lost_ > 0 ? kLostBytes : 0);
  const bool forward = mode_ == RingMode::kForward;
  if (paused_.load() || size > data_bytes_ || (forward && !HasRoomFor(size))) {
    ++lost_;
    ++dropped_;
    return false;
  }
  uint64_t at = forward ? head_ : head_ - size;
  if (lost_ > 0) {
    const std::array<uint64_t, 2> lost = {1, lost_};
    PutRecord(at, PERF_RECORD_LOST, std::as_bytes(std::span(lost)));
    lost_ = 0;
  }
  PutRecord(at, type, body);
  head_ = forward ? head_ + size : head_ - size;
  written_bytes_ += size;
  __atomic_store_n(&page().data_head, head_, __ATOMIC_RELEASE);
  return true;
}

bool FakeRing::Output(uint32_t type, std::span<const std::byte> body) {
  writing_ = true;
  ++tried_;
  const bool written = OutputUnlessPaused(type, body);
  writing_ = false;
  return written;
}

void FakeRing::WaitForWriter() const {
  while (writing_) {
    std::this_thread::yield();
  }
}

void FakeRing::PutAux(uint64_t size) {
  std::byte* ring = memory_ + kPageBytes + data_bytes_;
  for (uint64_t i = 0; i < size; ++i) {
    ring[(aux_head_ + i) & (aux_bytes_ - 1)] = AuxByte(aux_traced_ + i);
  }
}

void FakeRing::OutputAux(uint64_t size, uint64_t flags) {
  if (!aux_enabled_) {
    aux_traced_ += size;
    aux_missing_.back().bytes += size;
    return;
  }
  const uint64_t tail = __atomic_load_n(&page().aux_tail, __ATOMIC_ACQUIRE);
  const uint64_t fits = std::min(size, aux_bytes_ - (aux_head_ - tail));
  PutAux(fits);
  if (fits < size) {
    flags |= PERF_AUX_FLAG_TRUNCATED;
    aux_enabled_ = false;
    aux_missing_.push_back({aux_head_ + fits, size - fits});
  }
  const std::array<uint64_t, 3> body = {aux_head_, fits, flags};
  if (!Output(PERF_RECORD_AUX, std::as_bytes(std::span(body)))) {
    ++aux_record_drops_;
  }
  aux_head_ += fits;
  aux_traced_ += size;
  __atomic_store_n(&page().aux_head, aux_head_, __ATOMIC_RELEASE);
}

}  // namespace clew::recorder::perf
