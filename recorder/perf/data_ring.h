#ifndef CLEW_RECORDER_PERF_DATA_RING_H_
#define CLEW_RECORDER_PERF_DATA_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/perf/ring_page.h"

namespace clew::recorder::perf {

// One record as the kernel wrote it (perf_event.h, enum perf_event_type).
struct RecordView {
  uint64_t position = 0;             // of its first byte, as the heads count
  uint32_t type = 0;                 // PERF_RECORD_...
  uint16_t misc = 0;                 // PERF_RECORD_MISC_...
  std::span<const std::byte> bytes;  // header and body; valid during OnRecord
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  [[nodiscard]] virtual Status OnRecord(const RecordView& record) = 0;
};

// Where the bytes of a ring went. Always, after a call that read the ring:
//   forward:   delivered + skipped               = what the kernel wrote
//   overwrite: delivered + skipped + overwritten = what the kernel wrote
// What never got into the ring is told by LOST records, which are delivered.
struct DataRingCounts {
  uint64_t records = 0;
  uint64_t delivered_bytes = 0;
  uint64_t skipped_bytes = 0;      // an error told where
  uint64_t overwritten_bytes = 0;  // before they were read
};

// The ring of records that perf_event_open and mmap make. Gives every record
// once, in the order in which the kernel wrote them; allocates nothing but in
// Create and for errors. A record that wraps round the end is copied into a
// buffer of its own, so that every record is one span.
//
// Not thread-safe; the kernel (or a test in its place) is the only other party.
class DataRing {
 public:
  // `mapping` is what mmap gave, page and data area; it must outlive the ring.
  // Forward mode stores data_tail: the mapping must be writable then. `name`
  // ("core 3") begins every message. Errors are those of DataAreaOf.
  [[nodiscard]] static Result<DataRing> Create(std::span<std::byte> mapping,
                                               RingMode mode, std::string name);

  // Forward mode: gives `sink` all records up to the head of now and frees
  // their room step by step. An error of `sink` ends it; that record comes
  // again next time.
  //
  // kCorruptInput, with the position: a record's size is less than its header,
  // no multiple of 8, or ends behind the head: everything up to the head is
  // skipped and counted, and the next call goes on there. Head unaligned, or
  // further from the tail than the ring is long: nothing is consumed.
  [[nodiscard]] Status Drain(RecordSink& sink);

  // Overwrite mode (attr.write_backward): gives `sink` the records since the
  // last call that still are there, oldest first; a LOST comes before the
  // record that it was written with. A record of which a part was overwritten
  // counts as overwritten. On an error, of `sink` or kCorruptInput as above,
  // what was not given is skipped and counted.
  //
  // REQUIRES: output is paused (PERF_EVENT_IOC_PAUSE_OUTPUT) and no writer that
  // began before is still at work (PerfKernel::WaitForWriters). kCorruptInput
  // if the head moves meanwhile.
  [[nodiscard]] Status ReadPaused(RecordSink& sink);

  const DataRingCounts& counts() const { return counts_; }
  const std::string& name() const { return name_; }
  const perf_event_mmap_page& page() const { return *page_; }

 private:
  DataRing(perf_event_mmap_page* page, std::span<const std::byte> data,
           RingMode mode, std::string name);
  Status CheckHead(uint64_t head) const;
  Result<RecordView> RecordAt(uint64_t position, uint64_t available_bytes);
  std::span<const std::byte> Contiguous(uint64_t position, uint64_t bytes);
  Status DrainTo(uint64_t head, RecordSink& sink);
  void PublishTail();
  Status Deliver(const RecordView& record, RecordSink& sink);
  Status DeliverIndexed(uint64_t head, RecordSink& sink);
  Result<uint64_t> IndexRecords(uint64_t head, uint64_t written_bytes);

  perf_event_mmap_page* page_;
  std::span<const std::byte> data_;
  RingMode mode_;
  std::string name_;
  // Forward: first byte that was not delivered. Overwrite: head when last read.
  uint64_t position_;
  uint64_t published_tail_;
  std::unique_ptr<std::byte[]> wrapped_;  // one record of the largest size
  std::vector<uint32_t> index_;  // overwrite: records, newest first, from head
  size_t index_count_ = 0;
  DataRingCounts counts_;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_DATA_RING_H_
