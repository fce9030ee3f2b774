#ifndef CLEW_DECODER_PERF_TRACE_H_
#define CLEW_DECODER_PERF_TRACE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bundle/perf_data/perf_data.h"
#include "bundle/perf_data/tsc_conversion.h"
#include "common/stream.h"
#include "common/units.h"
#include "decoder/address_spaces.h"
#include "decoder/code_map.h"
#include "decoder/pt/core_decoder.h"
#include "decoder/slices.h"

namespace clew::decoder {

// What perf.data cannot tell, or only its owner may decide.
struct TraceConfig {
  ImageResolver resolve_image;     // empty: no code is found
  std::optional<CpuIdentity> cpu;  // absent: as the file says
  // See TimingConfig, and Attribution. Both are true for bundles of our
  // software sources.
  bool branches_before_timing = false;
  bool tsc_at_switches = false;
  // A file without PT is taken, for its threads and switches; otherwise it is
  // kUnsupported.
  bool sideband_alone = false;
  // Bytes of AUX area that came in several AUXTRACE records and are copied to
  // be in one piece again.
  uint64_t joined_aux_bytes_max = uint64_t{1} << 30;
};

// Records of a type, for `clew info` and tests.
struct RecordCount {
  std::string name;
  uint64_t count = 0;
};

struct ThreadInfo {
  int32_t process = 0;
  Tid thread;
  std::string name;  // the last COMM
};

// The PT bytes of one core, or of one thread (pt_stream.h).
struct CoreTrace {
  CoreId core;
  std::vector<AuxPiece> pieces;
  uint64_t bytes = 0;
};

// A loss that the sideband reports.
struct SidebandLoss {
  bool core_known = false;
  CoreId core;
  TscTicks time;
  uint64_t records = 0;
};

// A perf.data file with intel_pt, read and put in order; PT is not decoded yet.
// Memory: the sideband, that is some tens of bytes per context switch. The PT
// bytes are the file's own, unless a core's came in parts. Not thread-safe.
class PerfTrace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PerfTrace>> Load(
      bundle::PerfData data, const TraceConfig& config);

  const std::vector<CoreTrace>& cores() const { return cores_; }
  const std::vector<Slice>& slices() const { return slices_; }
  // Whose code ran where.
  const AddressSpaces& spaces() const { return spaces_; }
  // Of a slice of slices(). kSpaceUnknown: its process is not known.
  SpaceId SpaceOf(const Slice& slice) const;
  // What a thread's process had mapped last, empty if it is not known; in a
  // trace of one process, all.
  CodeMap CodeOf(Tid thread) const;
  const TimingConfig& timing() const { return timing_; }
  const bundle::TscConversion& conversion() const { return conversion_; }
  const CpuIdentity& cpu() const { return cpu_; }
  // False: there are no PT bytes, and pt_info() is empty.
  bool has_pt() const { return has_pt_info_; }
  // As AUXTRACE_INFO says.
  const bundle::PtInfoRecord& pt_info() const { return pt_info_; }
  const bundle::PerfData& data() const { return data_; }
  bool tsc_at_switches() const { return config_.tsc_at_switches; }
  const std::map<Tid, ThreadInfo>& threads() const { return threads_; }
  const std::vector<SidebandLoss>& losses() const { return losses_; }
  // In the order of their type numbers.
  std::vector<RecordCount> RecordCounts() const;
  const std::string& name() const { return data_.name(); }
  // "2 cores", "3 threads": whose PT cores() has.
  std::string StreamsText() const;

 private:
  struct AuxHole {
    uint64_t offset = 0;
    std::string reason;
  };
  PerfTrace(bundle::PerfData data, const TraceConfig& config)
      : data_(std::move(data)), config_(config) {}
  Status ReadRecords();
  Status OnFirstPass(const bundle::Record& record);
  void SetPtInfo(const bundle::PtInfoRecord& info);
  void ReadTiming(const bundle::PtInfoRecord& info);
  void OnRecord(const bundle::Record& record);
  void OnTask(const bundle::TaskRecord& task, const bundle::SampleId& sample);
  void OnComm(const bundle::CommRecord& comm, const bundle::SampleId& sample);
  void NoteProcess(const bundle::MmapRecord& mapping);
  void FindSpaces();
  TscTicks CodeTime(const bundle::SampleId& sample) const;
  int32_t ProcessOf(Tid thread) const;
  void OnSwitch(const bundle::SwitchRecord& change,
                const bundle::SampleId& sample);
  void OnItraceStart(const bundle::ItraceStartRecord& start,
                     const bundle::SampleId& sample);
  void OnAux(const bundle::AuxRecord& aux, const bundle::Record& record);
  std::optional<CoreId> StreamOf(const bundle::SampleId& sample) const;
  TscInterval TimeOf(const bundle::SampleId& sample) const;
  Status BuildPieces();
  Status BuildCore(CoreId core, std::vector<bundle::AuxtraceRecord> parts);
  Result<std::span<const std::byte>> Join(
      std::span<const bundle::AuxtraceRecord> run, uint64_t bytes);
  void AddPieces(CoreTrace& trace, AuxPiece piece);

  bundle::PerfData data_;
  TraceConfig config_;
  CpuIdentity cpu_;
  bool has_pt_info_ = false;
  bundle::PtInfoRecord pt_info_;
  bundle::TscConversion conversion_;
  TimingConfig timing_;
  bool per_thread_ = false;                  // each thread has its own stream
  std::map<uint64_t, Tid> thread_of_event_;  // of ID_INDEX
  int32_t first_process_ = 0;                // that has mappings; 0: none has
  AddressSpaces spaces_;
  std::vector<SpaceId> space_of_;  // by slice
  SliceBuilder slice_builder_;
  std::vector<Slice> slices_;
  std::vector<CoreTrace> cores_;
  std::map<Tid, ThreadInfo> threads_;
  std::vector<SidebandLoss> losses_;
  std::map<uint32_t, uint64_t> record_counts_;
  std::vector<bundle::AuxtraceRecord> auxtrace_;
  std::map<CoreId, std::vector<AuxHole>> holes_;
  std::vector<std::vector<std::byte>> joined_;
  uint64_t joined_bytes_ = 0;
};

// Code files that a trace's mappings name and that were not found.
struct MissingImages {
  std::vector<bundle::MmapRecord> needed;
  size_t others = 0;  // of other processes alone
};

// Needed is what the process of `failing` had mapped last; if that thread is
// not known, or is 0, what any process had.
MissingImages FindMissing(const PerfTrace& trace, Tid failing);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PERF_TRACE_H_
