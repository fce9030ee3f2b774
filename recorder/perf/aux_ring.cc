#include "recorder/perf/aux_ring.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::recorder::perf {

AuxRing::AuxRing(perf_event_mmap_page& page, std::span<const std::byte> area,
                 RingMode mode, std::string name)
    : page_(&page),
      area_(area),
      mode_(mode),
      name_(std::move(name)),
      tail_(page.aux_tail) {}

Result<AuxRing> AuxRing::Create(perf_event_mmap_page& page,
                                std::span<const std::byte> area, RingMode mode,
                                std::string name) {
  CLEW_RETURN_IF_ERROR(CheckRingSize(area.size(), "AUX ring", name));
  if (page.aux_size != area.size()) {
    return CorruptInput("{}: AUX ring: the page says {:#x} bytes, mapped {:#x}",
                        name, uint64_t{page.aux_size}, area.size());
  }
  return AuxRing(page, area, mode, std::move(name));
}

Status AuxRing::Deliver(uint64_t begin, uint64_t size, AuxSink& sink) {
  const RingSpans spans = SpansOf(area_, begin, size);
  const uint64_t offset =
      mode_ == RingMode::kForward ? begin : delivered_bytes_;
  CLEW_RETURN_IF_ERROR(sink.OnAux(
      {.offset = offset, .first = spans.first, .second = spans.second}));
  delivered_bytes_ += size;
  return {};
}

Status AuxRing::Drain(AuxSink& sink) {
  CLEW_CHECK(mode_ == RingMode::kForward, "{} is for snapshots", name_);
  const uint64_t head = LoadHead(page_->aux_head);
  if (head - tail_ > area_.size()) {
    return CorruptInput(
        "{}: AUX ring: head {:#x} is not within {:#x} bytes behind the tail "
        "{:#x}",
        name_, head, area_.size(), tail_);
  }
  if (head == tail_) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(Deliver(tail_, head - tail_, sink));
  tail_ = head;
  StoreTail(page_->aux_tail, head);
  return {};
}

Status AuxRing::ReadSnapshot(AuxSink& sink) {
  CLEW_CHECK(mode_ == RingMode::kOverwrite, "{} is no snapshot", name_);
  // intel_pt tells the place in the ring, others count all bytes.
  const uint64_t head = LoadHead(page_->aux_head);
  const uint64_t place = head & (area_.size() - 1);
  has_wrapped_ = has_wrapped_ || head >= area_.size() ||
                 std::ranges::any_of(area_.subspan(place), [](std::byte b) {
                   return b != std::byte{0};
                 });
  const uint64_t size = has_wrapped_ ? area_.size() : place;
  if (size == 0) {
    return {};
  }
  return Deliver(has_wrapped_ ? place : 0, size, sink);
}

}  // namespace clew::recorder::perf
