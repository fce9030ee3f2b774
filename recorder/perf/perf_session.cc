#include "recorder/perf/perf_session.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "common/x86/page.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder::perf {
namespace {

constexpr uint64_t kWakeupShare = 8;  // of the data ring
constexpr int kConversionTries = 1000;

// The page changes under us: `lock` is odd or different then. Each field is
// read with acquire, so that `lock` is read again behind all of them.
std::optional<bundle::TscConversion> TryConversion(
    const perf_event_mmap_page& page) {
  const uint32_t before = __atomic_load_n(&page.lock, __ATOMIC_ACQUIRE);
  const bundle::TscConversion read = {
      .shift = __atomic_load_n(&page.time_shift, __ATOMIC_ACQUIRE),
      .mult = __atomic_load_n(&page.time_mult, __ATOMIC_ACQUIRE),
      .zero = __atomic_load_n(&page.time_zero, __ATOMIC_ACQUIRE)};
  const uint32_t after = __atomic_load_n(&page.lock, __ATOMIC_RELAXED);
  return before == after && before % 2 == 0 ? std::optional(read)
                                            : std::nullopt;
}

}  // namespace

Error ExplainPerfError(Error error, const std::string& proc) {
  const auto setting = [&proc](const char* name) {
    return FirstLine(proc + "/sys/kernel/" + name).value_or("?");
  };
  switch (error.sys_errno) {
    case EACCES:
    case EPERM:
      error.message += fmt::format(
          "; kernel.perf_event_paranoid is {}: whole CPUs and cgroups need 0 "
          "or less, own threads 2 or less, or CAP_PERFMON for either; a ring "
          "beyond kernel.perf_event_mlock_kb ({} KiB a CPU, and RLIMIT_MEMLOCK)"
          " needs CAP_IPC_LOCK or a smaller --buffer; threads of another user "
          "need CAP_PERFMON and CAP_SYS_PTRACE",
          setting("perf_event_paranoid"), setting("perf_event_mlock_kb"));
      break;
    case EMFILE:
      error.message += "; raise the limit of open files (ulimit -n)";
      break;
    case ENFILE:
      error.message += "; raise fs.file-max";
      break;
    case ESRCH:
      error.message += "; that thread is gone";
      break;
    case ENOMEM:
    case ENOSPC:
      error.message += "; choose a smaller --buffer";
      break;
    case EBUSY:
      error.message +=
          "; another program traces with PT on this CPU, and only one can";
      break;
    default:
      break;
  }
  return error;
}

PerfSession::PerfSession(PerfKernel& kernel, PerfSessionOptions options)
    : kernel_(&kernel), options_(std::move(options)) {}

PerfSession::~PerfSession() = default;

Result<PerfSession> PerfSession::Open(PerfKernel& kernel,
                                      PerfSessionOptions options) {
  PerfSession session(kernel, std::move(options));
  CLEW_RETURN_IF_ERROR(session.MakePlan());
  CLEW_ASSIGN_OR_RETURN(poller, kernel.MakePoller());
  session.poller_ = std::move(poller);
  CLEW_ASSIGN_OR_RETURN(cores, OnlineCores(session.options_.sys));
  for (const CoreId core : cores) {
    CLEW_RETURN_IF_ERROR(session.OpenCore(core));
  }
  return session;
}

Status PerfSession::MakePlan() {
  if (!std::has_single_bit(options_.data_bytes) ||
      options_.data_bytes < kPageBytes) {
    return InvalidArgument(
        "data ring: wanted a power of two of at least {} bytes, found {}",
        kPageBytes, options_.data_bytes);
  }
  const bool per_task = !options_.threads.empty();
  plan_.threads = per_task ? options_.threads : std::vector<int32_t>{-1};
  CLEW_RETURN_IF_ERROR(OpenCgroup());
  plan_.data_bytes = options_.data_bytes;
  plan_.mode = options_.snapshot ? RingMode::kOverwrite : RingMode::kForward;
  plan_.sideband = SidebandAttr({.inherit = per_task,
                                 .enable_on_exec = options_.enable_on_exec,
                                 .overwrite = options_.snapshot,
                                 .wakeup_bytes = static_cast<uint32_t>(
                                     options_.data_bytes / kWakeupShare)});
  if (!options_.pt) {
    return {};
  }
  PtOptions pt = *options_.pt;
  pt.per_task = per_task;
  if (pt.snapshot != options_.snapshot) {
    return InvalidArgument("PT and sideband must both be a snapshot, or none");
  }
  CLEW_ASSIGN_OR_RETURN(pmu, Pmu::Discover(options_.sys));
  CLEW_ASSIGN_OR_RETURN(attr, PtAttr(pmu, pt));
  CLEW_ASSIGN_OR_RETURN(filters, FilterText(pmu, pt));
  attr.inherit = per_task ? 1 : 0;
  attr.enable_on_exec = options_.enable_on_exec ? 1 : 0;
  plan_.pt = attr;
  plan_.filter_text = std::move(filters);
  plan_.aux_bytes = pt.buffer_bytes;
  return {};
}

Status PerfSession::OpenCgroup() {
  if (options_.cgroup.empty()) {
    return {};
  }
  if (!options_.threads.empty() || options_.enable_on_exec) {
    return InvalidArgument("a cgroup, or threads: not both");
  }
  const int fd =
      open(options_.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return SystemError(errno,
                       fmt::format("cannot open cgroup {:?}", options_.cgroup));
  }
  cgroup_ = std::make_unique<Fd>(fd);
  plan_.cgroup = cgroup_.get();
  return {};
}

Status PerfSession::OpenCore(CoreId core) {
  auto rings = CoreRings::Open(*kernel_, core, plan_);
  if (!rings) {
    return std::unexpected(
        ExplainPerfError(std::move(rings).error(), options_.proc));
  }
  if (!options_.snapshot) {
    for (const Fd* leader : (*rings)->leaders()) {
      CLEW_RETURN_IF_ERROR(kernel_->Watch(poller_, *leader));
    }
  }
  if (enabled_) {
    CLEW_RETURN_IF_ERROR((*rings)->Enable());
  }
  cores_.emplace(core, *std::move(rings));
  return {};
}

Status PerfSession::Enable() {
  enabled_ = true;
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->Enable());
  }
  return {};
}

Status PerfSession::Disable() {
  enabled_ = false;
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->Disable());
  }
  return {};
}

Result<bool> PerfSession::Wait(int timeout_ms) {
  return kernel_->Wait(poller_, timeout_ms);
}

Status PerfSession::WakeFor(const Fd& fd) {
  return kernel_->Watch(poller_, fd);
}

Status PerfSession::Drain(SessionSink& sink) {
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->Drain(sink));
  }
  return {};
}

Status PerfSession::SnapshotStopped(SessionSink& sink) {
  CLEW_RETURN_IF_ERROR(kernel_->WaitForWriters());
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->ReadSnapshot(sink));
  }
  return {};
}

Status PerfSession::Snapshot(SessionSink& sink) {
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->StopOutput());
  }
  const Status read = SnapshotStopped(sink);
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->ResumeOutput());
  }
  return read;
}

Status PerfSession::CloseCore(CoreRings& rings, SessionSink& sink) {
  const Status rest = options_.snapshot ? Status() : rings.Drain(sink);
  AddCounts(rings, gone_);
  CLEW_RETURN_IF_ERROR(rest);
  return rings.Close(sink);
}

Status PerfSession::FollowCores(SessionSink& sink) {
  CLEW_ASSIGN_OR_RETURN(online, OnlineCores(options_.sys));
  for (auto it = cores_.begin(); it != cores_.end();) {
    if (std::ranges::binary_search(online, it->first)) {
      ++it;
      continue;
    }
    const auto rings = std::move(it->second);
    it = cores_.erase(it);
    ++gone_.cores_gone;
    CLEW_RETURN_IF_ERROR(CloseCore(*rings, sink));
  }
  for (const CoreId core : online) {
    if (!cores_.contains(core)) {
      CLEW_RETURN_IF_ERROR(OpenCore(core));
      ++gone_.cores_added;
    }
  }
  return {};
}

Status PerfSession::Finish(SessionSink& sink) {
  while (!cores_.empty()) {
    const auto rings = std::move(cores_.begin()->second);
    cores_.erase(cores_.begin());
    CLEW_RETURN_IF_ERROR(CloseCore(*rings, sink));
  }
  return {};
}

std::vector<CoreId> PerfSession::cores() const {
  std::vector<CoreId> list;
  list.reserve(cores_.size());
  for (const auto& [core, rings] : cores_) {
    list.push_back(core);
  }
  return list;
}

void PerfSession::AddCounts(const CoreRings& rings,
                            SessionCounts& counts) const {
  counts.events += rings.counts().events;
  counts.lost_records += rings.counts().lost_records;
  counts.lost_samples += rings.counts().lost_samples;
  counts.skipped_bytes += rings.data().counts().skipped_bytes;
  if (rings.pt_data() != nullptr) {
    counts.skipped_bytes += rings.pt_data()->counts().skipped_bytes;
  }
  counts.overwritten_bytes += rings.data().counts().overwritten_bytes;
}

SessionCounts PerfSession::counts() const {
  SessionCounts counts = gone_;
  for (const auto& [core, rings] : cores_) {
    AddCounts(*rings, counts);
  }
  return counts;
}

Result<EventIds> PerfSession::Ids() const {
  EventIds ids;
  for (const auto& [core, rings] : cores_) {
    CLEW_RETURN_IF_ERROR(rings->AddIds(ids));
  }
  return ids;
}

Result<bundle::TscConversion> PerfSession::Conversion() const {
  if (cores_.empty()) {
    return InvalidArgument("no core is recorded");
  }
  const perf_event_mmap_page& page = cores_.begin()->second->data().page();
  if (page.cap_user_time_zero == 0) {
    return Unsupported(
        "wanted perf's clock in terms of the TSC, found cap_user_time_zero "
        "clear: the TSC of this host is not used as its clock (see "
        "/sys/devices/system/clocksource/clocksource0/current_clocksource)");
  }
  for (int i = 0; i < kConversionTries; ++i) {
    const auto conversion = TryConversion(page);
    if (conversion && (conversion->mult == 0 || conversion->shift >= 64)) {
      return Unsupported(
          "perf's clock: time_mult is {}, time_shift is {}; wanted more than "
          "0, and below 64",
          conversion->mult, conversion->shift);
    }
    if (conversion) {
      return *conversion;
    }
  }
  return Unsupported("the kernel keeps changing its clock");
}

}  // namespace clew::recorder::perf
