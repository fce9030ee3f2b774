#ifndef CLEW_RECORDER_PERF_CORE_RINGS_H_
#define CLEW_RECORDER_PERF_CORE_RINGS_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/units.h"
#include "recorder/perf/aux_ledger.h"
#include "recorder/perf/aux_ring.h"
#include "recorder/perf/data_ring.h"
#include "recorder/perf/events.h"
#include "recorder/perf/kernel.h"

namespace clew::recorder::perf {

// Takes what a session gives. Nothing of it may be kept behind the call.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // `event` is what `record` says.
  [[nodiscard]] virtual Status OnEvent(CoreId core, const RecordView& record,
                                       const Event& event) = 0;
  [[nodiscard]] virtual Status OnAux(CoreId core,
                                     const AuxRingPiece& piece) = 0;
  virtual void OnGap(CoreId core, const AuxGap& gap) = 0;
};

// How to open the events of a core; all of it is the same for each core.
struct CorePlan {
  std::vector<int32_t> threads;  // -1 alone: every thread
  const Fd* cgroup = nullptr;    // instead of `threads`; outlives the rings
  perf_event_attr sideband = {};
  std::optional<perf_event_attr> pt;
  std::string filter_text;  // for PT; may be empty
  uint64_t data_bytes = 0;  // of the sideband, a power of two of pages
  uint64_t aux_bytes = 0;   // only with pt
  RingMode mode = RingMode::kForward;  // of sideband and AUX ring
};

// Ids of the events (SampleId::event_id).
struct EventIds {
  std::vector<uint64_t> sideband;
  std::vector<uint64_t> pt;
};

struct CoreCounts {
  uint64_t events = 0;
  uint64_t lost_records = 0;  // as LOST tells
  uint64_t lost_samples = 0;  // as LOST_SAMPLES tells
};

// The events of one CPU and their rings: the sideband's data ring, and for PT a
// data ring of its own with the AUX ring. Two, because a data ring is only
// overwritten if its page is mapped read-only, and the place of an AUX ring is
// written to that page. Records of the two are each in order; together they are
// ordered by SampleId::time.
//
// Closes and unmaps everything when destroyed. Not thread-safe.
class CoreRings {
 public:
  // `kernel` must outlive it. Events are as their attributes say, so disabled.
  [[nodiscard]] static Result<std::unique_ptr<CoreRings>> Open(
      PerfKernel& kernel, CoreId core, const CorePlan& plan);

  [[nodiscard]] Status Enable();
  [[nodiscard]] Status Disable();
  // Forward mode: everything there is. PT that a full ring has stopped goes on.
  [[nodiscard]] Status Drain(SessionSink& sink);
  // Overwrite mode, in this order: StopOutput on all cores, WaitForWriters,
  // ReadSnapshot on all cores, ResumeOutput.
  [[nodiscard]] Status StopOutput();
  [[nodiscard]] Status ReadSnapshot(SessionSink& sink);
  [[nodiscard]] Status ResumeOutput();
  // No more bytes come. Reports those that the AUX records did not describe.
  [[nodiscard]] Status Close(SessionSink& sink);

  // Adds the ids of this core's events to `ids`.
  [[nodiscard]] Status AddIds(EventIds& ids) const;

  CoreId core() const { return core_; }
  // Wake the reader: the owner of each data ring.
  std::vector<const Fd*> leaders() const;
  const DataRing& data() const { return sideband_.ring; }
  // nullptr without PT.
  const DataRing* pt_data() const { return pt_ ? &pt_->group.ring : nullptr; }
  const CoreCounts& counts() const { return counts_; }

 private:
  class Forward;
  class WithoutAux;
  // Events that write to one ring, which belongs to the first.
  struct Group {
    std::vector<Fd> events;
    MappedMemory memory;
    DataRing ring;
  };
  struct Pt {
    Group group;
    MappedMemory aux_memory;
    AuxRing aux;
  };
  CoreRings(PerfKernel& kernel, CoreId core, RingMode mode, Group sideband);
  static Result<Group> OpenGroup(PerfKernel& kernel, CoreId core,
                                 const perf_event_attr& attr,
                                 const CorePlan& plan, uint64_t data_bytes,
                                 RingMode mode);
  static Result<Pt> OpenPt(PerfKernel& kernel, CoreId core,
                           const perf_event_attr& attr, const CorePlan& plan);
  Status ControlPt(unsigned long request, std::string_view what);

  PerfKernel* kernel_;
  CoreId core_;
  Group sideband_;
  std::optional<Pt> pt_;
  // Borrowed by the ledger for the time of a call.
  struct GapRelay final : AuxGapSink {
    void OnGap(const AuxGap& gap) override { sink->OnGap(core, gap); }
    SessionSink* sink = nullptr;
    CoreId core;
  } relay_;
  AuxLedger ledger_;
  bool is_snapshot_;
  bool pt_stopped_ = false;  // by the kernel, the ring being full
  CoreCounts counts_;
};

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_CORE_RINGS_H_
