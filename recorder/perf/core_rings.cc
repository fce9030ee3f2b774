#include "recorder/perf/core_rings.h"

#include <fmt/format.h>

#include <utility>

#include "common/x86/page.h"

namespace clew::recorder::perf {
namespace {

// AUX, ITRACE_START and LOST records alone.
constexpr uint64_t kPtDataBytes = 16 * kPageBytes;

std::string NameOf(CoreId core) { return fmt::format("core {}", core); }

Result<std::vector<Fd>> OpenEvents(PerfKernel& kernel, CoreId core_id,
                                   const perf_event_attr& attr,
                                   const CorePlan& plan) {
  const auto core = static_cast<int>(core_id.as_int());
  std::vector<Fd> events;
  if (plan.cgroup != nullptr) {
    CLEW_ASSIGN_OR_RETURN(event,
                          kernel.OpenCgroupEvent(attr, *plan.cgroup, core));
    events.push_back(std::move(event));
    return events;
  }
  for (const int32_t thread : plan.threads) {
    CLEW_ASSIGN_OR_RETURN(event, kernel.OpenEvent(attr, thread, core));
    events.push_back(std::move(event));
  }
  return events;
}

Status Control(PerfKernel& kernel, const std::vector<Fd>& events,
               unsigned long request, unsigned long argument,
               std::string_view what) {
  for (const Fd& event : events) {
    CLEW_RETURN_IF_ERROR(kernel.Control(event, request, argument, what));
  }
  return {};
}

}  // namespace

// Counts, keeps the ledger, and hands on.
class CoreRings::Forward final : public RecordSink, public AuxSink {
 public:
  Forward(CoreRings& rings, SessionSink& sink) : rings_(rings), sink_(sink) {
    rings_.relay_.sink = &sink;
  }
  ~Forward() override { rings_.relay_.sink = nullptr; }
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  Status OnRecord(const RecordView& record) override {
    CLEW_ASSIGN_OR_RETURN(event, ParseEvent(record, rings_.data().name()));
    CLEW_RETURN_IF_ERROR(sink_.OnEvent(rings_.core_, record, event));
    ++rings_.counts_.events;
    if (const auto* lost = std::get_if<bundle::LostRecord>(&event.body)) {
      (lost->samples ? rings_.counts_.lost_samples
                     : rings_.counts_.lost_records) += lost->count;
    } else if (const auto* aux = std::get_if<bundle::AuxRecord>(&event.body)) {
      return OnAuxRecord(*aux);
    }
    return {};
  }
  Status OnAux(const AuxRingPiece& piece) override {
    return sink_.OnAux(rings_.core_, piece);
  }

 private:
  Status OnAuxRecord(const bundle::AuxRecord& aux) {
    rings_.pt_stopped_ = rings_.pt_stopped_ || aux.truncated();
    return rings_.ledger_.OnAuxRecord(aux);
  }

  CoreRings& rings_;
  SessionSink& sink_;
};

// Where the AUX ring is overwritten an AUX record tells nothing that is still
// true, and at each switch of a traced thread comes another, until there is no
// room: what is lost then does not count as a loss.
class CoreRings::WithoutAux final : public RecordSink {
 public:
  explicit WithoutAux(Forward& forward) : forward_(forward) {}

  Status OnRecord(const RecordView& record) override {
    const bool told_by_ring =
        record.type == PERF_RECORD_AUX || record.type == PERF_RECORD_LOST;
    return told_by_ring ? Status() : forward_.OnRecord(record);
  }

 private:
  Forward& forward_;
};

CoreRings::CoreRings(PerfKernel& kernel, CoreId core, RingMode mode,
                     Group sideband)
    : kernel_(&kernel),
      core_(core),
      sideband_(std::move(sideband)),
      ledger_(relay_, NameOf(core)),
      is_snapshot_(mode == RingMode::kOverwrite) {
  relay_.core = core;
}

Result<std::unique_ptr<CoreRings>> CoreRings::Open(PerfKernel& kernel,
                                                   CoreId core,
                                                   const CorePlan& plan) {
  CLEW_ASSIGN_OR_RETURN(sideband, OpenGroup(kernel, core, plan.sideband, plan,
                                            plan.data_bytes, plan.mode));
  std::unique_ptr<CoreRings> rings(
      new CoreRings(kernel, core, plan.mode, std::move(sideband)));
  if (plan.pt) {
    CLEW_ASSIGN_OR_RETURN(pt, OpenPt(kernel, core, *plan.pt, plan));
    rings->pt_.emplace(std::move(pt));
  }
  return rings;
}

std::vector<const Fd*> CoreRings::leaders() const {
  std::vector<const Fd*> list = {&sideband_.events.front()};
  if (pt_) {
    list.push_back(&pt_->group.events.front());
  }
  return list;
}

// perf_event_open(2): a ring that is mapped without PROT_WRITE is overwritten.
Result<CoreRings::Group> CoreRings::OpenGroup(PerfKernel& kernel, CoreId core,
                                              const perf_event_attr& attr,
                                              const CorePlan& plan,
                                              uint64_t data_bytes,
                                              RingMode mode) {
  CLEW_ASSIGN_OR_RETURN(events, OpenEvents(kernel, core, attr, plan));
  const Fd& leader = events.front();
  CLEW_ASSIGN_OR_RETURN(memory, kernel.Map(leader, 0, kPageBytes + data_bytes,
                                           mode == RingMode::kForward));
  CLEW_ASSIGN_OR_RETURN(ring,
                        DataRing::Create(memory.bytes(), mode, NameOf(core)));
  for (size_t i = 1; i < events.size(); ++i) {
    CLEW_RETURN_IF_ERROR(
        kernel.Control(events[i], PERF_EVENT_IOC_SET_OUTPUT,
                       static_cast<unsigned long>(leader.get()), "redirect"));
  }
  return Group{.events = std::move(events),
               .memory = std::move(memory),
               .ring = std::move(ring)};
}

Result<CoreRings::Pt> CoreRings::OpenPt(PerfKernel& kernel, CoreId core,
                                        const perf_event_attr& attr,
                                        const CorePlan& plan) {
  CLEW_ASSIGN_OR_RETURN(group, OpenGroup(kernel, core, attr, plan, kPtDataBytes,
                                         RingMode::kForward));
  const uint64_t offset_bytes = kPageBytes + kPtDataBytes;
  auto& page =
      *reinterpret_cast<perf_event_mmap_page*>(group.memory.bytes().data());
  page.aux_offset = offset_bytes;
  page.aux_size = plan.aux_bytes;
  CLEW_ASSIGN_OR_RETURN(
      memory, kernel.Map(group.events.front(), offset_bytes, plan.aux_bytes,
                         plan.mode == RingMode::kForward));
  CLEW_ASSIGN_OR_RETURN(
      aux, AuxRing::Create(page, memory.bytes(), plan.mode, NameOf(core)));
  if (!plan.filter_text.empty()) {
    CLEW_RETURN_IF_ERROR(
        Control(kernel, group.events, PERF_EVENT_IOC_SET_FILTER,
                reinterpret_cast<unsigned long>(plan.filter_text.c_str()),
                "set the address filter of"));
  }
  return Pt{.group = std::move(group),
            .aux_memory = std::move(memory),
            .aux = std::move(aux)};
}

Status CoreRings::ControlPt(unsigned long request, std::string_view what) {
  return pt_ ? Control(*kernel_, pt_->group.events, request, 0, what)
             : Status();
}

// PT is off at least as long as the sideband that explains it.
Status CoreRings::Enable() {
  CLEW_RETURN_IF_ERROR(
      Control(*kernel_, sideband_.events, PERF_EVENT_IOC_ENABLE, 0, "enable"));
  return ControlPt(PERF_EVENT_IOC_ENABLE, "enable");
}

Status CoreRings::Disable() {
  CLEW_RETURN_IF_ERROR(ControlPt(PERF_EVENT_IOC_DISABLE, "disable"));
  return Control(*kernel_, sideband_.events, PERF_EVENT_IOC_DISABLE, 0,
                 "disable");
}

// Records first: the kernel writes an AUX record before it moves the AUX head,
// so the bytes that a record announces are there by the next drain at the
// latest.
Status CoreRings::Drain(SessionSink& sink) {
  Forward forward(*this, sink);
  CLEW_RETURN_IF_ERROR(sideband_.ring.Drain(forward));
  if (!pt_) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(pt_->group.ring.Drain(forward));
  CLEW_RETURN_IF_ERROR(pt_->aux.Drain(forward));
  if (std::exchange(pt_stopped_, false)) {
    return ControlPt(PERF_EVENT_IOC_ENABLE, "enable");
  }
  return {};
}

// PT must be off for its head to be up to date; the sideband is only held back,
// so that what is missing meanwhile is counted by the kernel (LOST).
Status CoreRings::StopOutput() {
  CLEW_RETURN_IF_ERROR(ControlPt(PERF_EVENT_IOC_DISABLE, "disable"));
  return kernel_->Control(sideband_.events.front(), PERF_EVENT_IOC_PAUSE_OUTPUT,
                          1, "pause");
}

Status CoreRings::ReadSnapshot(SessionSink& sink) {
  Forward forward(*this, sink);
  CLEW_RETURN_IF_ERROR(sideband_.ring.ReadPaused(forward));
  if (!pt_) {
    return {};
  }
  WithoutAux without_aux(forward);
  CLEW_RETURN_IF_ERROR(pt_->group.ring.Drain(without_aux));
  return pt_->aux.ReadSnapshot(forward);
}

Status CoreRings::ResumeOutput() {
  CLEW_RETURN_IF_ERROR(kernel_->Control(
      sideband_.events.front(), PERF_EVENT_IOC_PAUSE_OUTPUT, 0, "resume"));
  return ControlPt(PERF_EVENT_IOC_ENABLE, "enable");
}

Status CoreRings::AddIds(EventIds& ids) const {
  for (const Fd& event : sideband_.events) {
    CLEW_ASSIGN_OR_RETURN(id, kernel_->EventId(event));
    ids.sideband.push_back(id);
  }
  if (pt_) {
    for (const Fd& event : pt_->group.events) {
      CLEW_ASSIGN_OR_RETURN(id, kernel_->EventId(event));
      ids.pt.push_back(id);
    }
  }
  return {};
}

Status CoreRings::Close(SessionSink& sink) {
  if (!pt_ || is_snapshot_) {
    return {};
  }
  Forward forward(*this, sink);
  return ledger_.Close(pt_->aux.delivered_bytes());
}

}  // namespace clew::recorder::perf
