#ifndef CLEW_BUNDLE_PERF_DATA_KERNEL_RECORDS_H_
#define CLEW_BUNDLE_PERF_DATA_KERNEL_RECORDS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "common/byte_reader.h"
#include "common/result.h"
#include "common/units.h"

// The records of Linux's kernel that a trace needs, as they are in its rings
// and in perf.data.
//
// Source: linux/perf_event.h, enum perf_event_type.

namespace clew::bundle {

// MMAP and MMAP2: a mapping that exists from now on. MMAP does not say how it
// is protected: executable, unless its misc bit says data.
struct MmapView {
  int32_t pid = 0;
  Tid tid;
  TraceeAddr addr;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  bool executable = false;
  std::span<const std::byte> build_id;  // empty if the record has none
  std::string_view path;
};

struct CommRecord {
  int32_t pid = 0;
  Tid tid;
  std::string_view name;
  bool exec = false;  // set by execve
};

// FORK, where `tid` is new, and EXIT, where it ends.
struct TaskRecord {
  bool exited = false;
  int32_t pid = 0;
  int32_t parent_pid = 0;
  Tid tid;
  Tid parent_tid;
};

// SWITCH and SWITCH_CPU_WIDE. The sample id has the thread that goes out or
// comes in.
struct SwitchRecord {
  bool out = false;
};

// Bytes [offset, offset + size) of the AUX area were written.
struct AuxRecord {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t flags = 0;  // PERF_AUX_FLAG_...
  // The area was full: trace is missing behind these bytes.
  bool truncated() const { return (flags & PERF_AUX_FLAG_TRUNCATED) != 0; }
};

struct ItraceStartRecord {
  int32_t pid = 0;
  Tid tid;
};

// LOST: records that found no room in the ring. LOST_SAMPLES: samples that the
// PMU dropped.
struct LostRecord {
  uint64_t count = 0;
  bool samples = false;
};

// Texts and spans in it point into the record.
using KernelRecord =
    std::variant<std::monostate, MmapView, CommRecord, TaskRecord, SwitchRecord,
                 AuxRecord, ItraceStartRecord, LostRecord>;

// Reads the fields of a record of this type with these misc bits
// (perf_event_header). `body` is at the first byte after the header and ends
// before the sample id. Returns monostate for a type that we do not use.
// Allocates only for errors.
//
// Fails with kCorruptInput, as `body` says it, if a field does not fit, a text
// has no NUL, a build-id has more than kBuildIdBytesMax bytes, or a range wraps
// round 64 bits.
[[nodiscard]] Result<KernelRecord> ParseKernelRecord(uint32_t type,
                                                     uint16_t misc,
                                                     ByteReader& body);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_KERNEL_RECORDS_H_
