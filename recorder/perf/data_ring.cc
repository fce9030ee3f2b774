#include "recorder/perf/data_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/check.h"

namespace clew::recorder::perf {
namespace {

constexpr size_t kRecordBytesMax = 1 << 16;  // perf_event_header::size is u16
constexpr uint64_t kAlignBytes = 8;
// Room is given back in steps: storing the tail for each record would have the
// two CPUs fight for its cache line.
constexpr uint64_t kPublishSteps = 8;

perf_event_header HeaderOf(std::span<const std::byte> bytes) {
  perf_event_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

}  // namespace

DataRing::DataRing(perf_event_mmap_page* page, std::span<const std::byte> data,
                   RingMode mode, std::string name)
    : page_(page),
      data_(data),
      mode_(mode),
      name_(std::move(name)),
      position_(mode == RingMode::kForward ? page->data_tail
                                           : LoadHead(page->data_head)),
      published_tail_(position_),
      wrapped_(std::make_unique<std::byte[]>(kRecordBytesMax)) {
  if (mode == RingMode::kOverwrite) {
    index_.resize(data.size() / sizeof(perf_event_header));
  }
}

Result<DataRing> DataRing::Create(std::span<std::byte> mapping, RingMode mode,
                                  std::string name) {
  CLEW_ASSIGN_OR_RETURN(data, DataAreaOf(mapping, name));
  auto* page = reinterpret_cast<perf_event_mmap_page*>(mapping.data());
  return DataRing(page, data, mode, std::move(name));
}

Status DataRing::CheckHead(uint64_t head) const {
  if (head % kAlignBytes != 0) {
    return CorruptInput("{}: data ring: head {:#x} is no multiple of {}", name_,
                        head, kAlignBytes);
  }
  if (mode_ == RingMode::kForward && head - position_ > data_.size()) {
    return CorruptInput(
        "{}: data ring: head {:#x} is not within {:#x} bytes behind the tail "
        "{:#x}",
        name_, head, data_.size(), position_);
  }
  return {};
}

std::span<const std::byte> DataRing::Contiguous(uint64_t position,
                                                uint64_t bytes) {
  const RingSpans spans = SpansOf(data_, position, bytes);
  if (spans.second.empty()) {
    return spans.first;
  }
  std::ranges::copy(spans.first, wrapped_.get());
  std::ranges::copy(spans.second, wrapped_.get() + spans.first.size());
  return {wrapped_.get(), bytes};
}

// REQUIRES: available_bytes is at least a header's.
Result<RecordView> DataRing::RecordAt(uint64_t position,
                                      uint64_t available_bytes) {
  const perf_event_header header =
      HeaderOf(SpansOf(data_, position, sizeof(header)).first);
  const uint64_t size_untrusted = header.size;
  if (size_untrusted < sizeof(header) || size_untrusted % kAlignBytes != 0 ||
      size_untrusted > available_bytes) {
    return CorruptInput(
        "{}: data ring: position {:#x}: record of type {} has size {}, wanted "
        "a multiple of {} from {} to the {:#x} bytes left",
        name_, position, uint32_t{header.type}, size_untrusted, kAlignBytes,
        sizeof(header), available_bytes);
  }
  return RecordView{.position = position,
                    .type = header.type,
                    .misc = header.misc,
                    .bytes = Contiguous(position, size_untrusted)};
}

void DataRing::PublishTail() {
  StoreTail(page_->data_tail, position_);
  published_tail_ = position_;
}

Status DataRing::Deliver(const RecordView& record, RecordSink& sink) {
  CLEW_RETURN_IF_ERROR(sink.OnRecord(record));
  ++counts_.records;
  counts_.delivered_bytes += record.bytes.size();
  return {};
}

Status DataRing::DrainTo(uint64_t head, RecordSink& sink) {
  while (position_ != head) {
    auto record = RecordAt(position_, head - position_);
    if (!record) {
      counts_.skipped_bytes += head - position_;
      position_ = head;
      return std::unexpected(std::move(record).error());
    }
    CLEW_RETURN_IF_ERROR(Deliver(*record, sink));
    position_ += record->bytes.size();
    if (position_ - published_tail_ >= data_.size() / kPublishSteps) {
      PublishTail();
    }
  }
  return {};
}

Status DataRing::Drain(RecordSink& sink) {
  CLEW_CHECK(mode_ == RingMode::kForward, "{} is overwritten", name_);
  const uint64_t head = LoadHead(page_->data_head);
  CLEW_RETURN_IF_ERROR(CheckHead(head));
  const Status status = DrainTo(head, sink);
  PublishTail();
  return status;
}

// Fills index_ with the distances from `head` of the records that are whole,
// newest first, and returns how many bytes they have.
Result<uint64_t> DataRing::IndexRecords(uint64_t head, uint64_t written_bytes) {
  const uint64_t kept = std::min<uint64_t>(written_bytes, data_.size());
  uint64_t done = 0;
  for (index_count_ = 0; done < kept; ++index_count_) {
    const perf_event_header header =
        HeaderOf(SpansOf(data_, head + done, sizeof(header)).first);
    if (header.size > kept - done && written_bytes > kept) {
      break;  // the oldest one, partly overwritten
    }
    CLEW_ASSIGN_OR_RETURN(record, RecordAt(head + done, kept - done));
    index_[index_count_] = static_cast<uint32_t>(done);
    done += record.bytes.size();
  }
  return done;
}

// Oldest first. The kernel writes a LOST and the record that follows it in one
// piece, the LOST at the lower address, so in this direction they would come
// the wrong way round.
Status DataRing::DeliverIndexed(uint64_t head, RecordSink& sink) {
  const auto record_at = [&](size_t i) {
    return RecordAt(head + index_[i], data_.size() - index_[i]);
  };
  for (size_t i = index_count_; i-- > 0;) {
    if (i > 0) {
      CLEW_ASSIGN_OR_RETURN(newer, record_at(i - 1));
      if (newer.type == PERF_RECORD_LOST) {
        CLEW_RETURN_IF_ERROR(Deliver(newer, sink));
        CLEW_ASSIGN_OR_RETURN(after_lost, record_at(i));
        CLEW_RETURN_IF_ERROR(Deliver(after_lost, sink));
        --i;
        continue;
      }
    }
    CLEW_ASSIGN_OR_RETURN(record, record_at(i));
    CLEW_RETURN_IF_ERROR(Deliver(record, sink));
  }
  return {};
}

Status DataRing::ReadPaused(RecordSink& sink) {
  CLEW_CHECK(mode_ == RingMode::kOverwrite, "{} is not overwritten", name_);
  const uint64_t head = LoadHead(page_->data_head);
  CLEW_RETURN_IF_ERROR(CheckHead(head));
  const uint64_t written = position_ - head;  // the head counts downwards
  const uint64_t delivered_before = counts_.delivered_bytes;
  position_ = head;
  const auto whole = IndexRecords(head, written);
  Status status;
  if (whole) {
    counts_.overwritten_bytes += written - *whole;
    status = DeliverIndexed(head, sink);
  } else {
    status = std::unexpected(whole.error());
  }
  counts_.skipped_bytes +=
      whole.value_or(written) - (counts_.delivered_bytes - delivered_before);
  if (status && LoadHead(page_->data_head) != head) {
    return CorruptInput("{}: data ring: written while it should be paused",
                        name_);
  }
  return status;
}

}  // namespace clew::recorder::perf
