#ifndef CLEW_RECORDER_PERF_AUX_LEDGER_H_
#define CLEW_RECORDER_PERF_AUX_LEDGER_H_

#include <cstdint>
#include <string>

#include "bundle/perf_data/kernel_records.h"
#include "common/result.h"

namespace clew::recorder::perf {

enum class AuxGapCause : uint8_t {
  kTruncated,  // the ring was full: trace is missing behind the bytes
  kPartial,    // the kernel says that there are gaps within the bytes
  kCollision,  // another user of the PMU cut into them
  kNoRecord,   // the bytes are there, the AUX record about them was lost
};

// A stretch of a core's trace about which something is not known.
struct AuxGap {
  AuxGapCause cause = AuxGapCause::kTruncated;
  uint64_t offset_bytes = 0;  // in the core's trace
  uint64_t size_bytes = 0;  // 0 for kTruncated: what is missing is not counted
};

class AuxGapSink {
 public:
  virtual ~AuxGapSink() = default;
  virtual void OnGap(const AuxGap& gap) = 0;
};

struct AuxCounts {
  uint64_t described_bytes = 0;    // by AUX records
  uint64_t undescribed_bytes = 0;  // by none: kNoRecord
  uint64_t truncations = 0;
  uint64_t partials = 0;
  uint64_t collisions = 0;
};

// Holds the AUX records of one core, full trace, against the bytes that were
// delivered: each byte is described by one AUX record or counted as described
// by none. Allocates only for errors. Not thread-safe.
class AuxLedger {
 public:
  // `gaps` must outlive the ledger. `name` ("core 3") begins every message.
  AuxLedger(AuxGapSink& gaps, std::string name);

  // The next AUX record. kCorruptInput: it begins within bytes that an earlier
  // one described, or wraps round 64 bits; it is not counted.
  [[nodiscard]] Status OnAuxRecord(const bundle::AuxRecord& aux);
  // Nothing more comes, and `delivered_bytes` came in all. Fails with
  // kCorruptInput if AUX records announced more.
  [[nodiscard]] Status Close(uint64_t delivered_bytes);

  const AuxCounts& counts() const { return counts_; }

 private:
  void Undescribed(uint64_t end_bytes);
  void CountFlags(const bundle::AuxRecord& aux);

  AuxGapSink* gaps_;
  std::string name_;
  uint64_t end_bytes_ = 0;  // of what records told so far
  AuxCounts counts_;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_AUX_LEDGER_H_
