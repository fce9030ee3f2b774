#include "recorder/perf/aux_ledger.h"

#include <utility>

namespace clew::recorder::perf {

AuxLedger::AuxLedger(AuxGapSink& gaps, std::string name)
    : gaps_(&gaps), name_(std::move(name)) {}

void AuxLedger::Undescribed(uint64_t end_bytes) {
  if (end_bytes == end_bytes_) {
    return;
  }
  const uint64_t size = end_bytes - end_bytes_;
  counts_.undescribed_bytes += size;
  gaps_->OnGap({.cause = AuxGapCause::kNoRecord,
                .offset_bytes = end_bytes_,
                .size_bytes = size});
  end_bytes_ = end_bytes;
}

void AuxLedger::CountFlags(const bundle::AuxRecord& aux) {
  if (aux.truncated()) {
    ++counts_.truncations;
    gaps_->OnGap({.cause = AuxGapCause::kTruncated,
                  .offset_bytes = aux.offset_bytes + aux.size_bytes,
                  .size_bytes = 0});
  }
  if ((aux.flags & PERF_AUX_FLAG_PARTIAL) != 0) {
    ++counts_.partials;
    gaps_->OnGap({.cause = AuxGapCause::kPartial,
                  .offset_bytes = aux.offset_bytes,
                  .size_bytes = aux.size_bytes});
  }
  if ((aux.flags & PERF_AUX_FLAG_COLLISION) != 0) {
    ++counts_.collisions;
    gaps_->OnGap({.cause = AuxGapCause::kCollision,
                  .offset_bytes = aux.offset_bytes,
                  .size_bytes = aux.size_bytes});
  }
}

Status AuxLedger::OnAuxRecord(const bundle::AuxRecord& aux) {
  const uint64_t end = aux.offset_bytes + aux.size_bytes;
  if (aux.offset_bytes < end_bytes_ || end < aux.offset_bytes) {
    return CorruptInput(
        "{}: AUX record of {:#x} bytes at {:#x}, wanted one from {:#x} on",
        name_, aux.size_bytes, aux.offset_bytes, end_bytes_);
  }
  Undescribed(aux.offset_bytes);
  counts_.described_bytes += aux.size_bytes;
  end_bytes_ = end;
  CountFlags(aux);
  return {};
}

Status AuxLedger::Close(uint64_t delivered_bytes) {
  if (delivered_bytes < end_bytes_) {
    return CorruptInput(
        "{}: AUX records tell of {:#x} bytes, the ring gave {:#x}", name_,
        end_bytes_, delivered_bytes);
  }
  Undescribed(delivered_bytes);
  return {};
}

}  // namespace clew::recorder::perf
