#include "recorder/bpf/input_source.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "common/linux/raw_rules.h"
#include "recorder/bpf/call_assembler.h"
#include "recorder/bpf/cgroup.h"
#include "recorder/bpf/event_parser.h"
#include "recorder/bpf/inputs.skel.h"

namespace clew::recorder::bpf {
namespace {

constexpr uint64_t kRingBytesMin = 64 << 10;
constexpr uint64_t kRingBytesMax = uint64_t{1} << 30;
constexpr uint64_t kBudgetMin = 10 << 10;
constexpr uint32_t kCallBytesMax = 16 << 20;  // PIECES_MAX of effects.bpf.h
constexpr uint32_t kThreadsMax = 1 << 20;
constexpr uint64_t kWindowsPerSecond = 10;  // WINDOW_NS
constexpr uint64_t kWakeupShare = 8;
constexpr ino_t kFirstPidNamespace = 0xeffffffc;  // linux/proc_ns.h

struct SkeletonDeleter {
  void operator()(inputs_bpf* skeleton) const { inputs_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<inputs_bpf, SkeletonDeleter>;

struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Ring = std::unique_ptr<ring_buffer, RingDeleter>;

// libbpf tells why in text alone; kept for our message.
thread_local std::string last_warning;

int KeepWarning(libbpf_print_level level, const char* format,
                va_list arguments) {
  if (level == LIBBPF_WARN) {
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    last_warning = text;
    last_warning.resize(std::min(last_warning.size(), last_warning.find('\n')));
  }
  return 0;
}

std::unexpected<Error> Refused(const char* what, int error) {
  if (error == EPERM || error == EACCES) {
    return SystemError(
        error, fmt::format("{}: needs root, or CAP_BPF and CAP_PERFMON (the "
                           "unit of clewd has them), and a kernel that is not "
                           "locked down",
                           what));
  }
  return SystemError(error, last_warning.empty()
                                ? what
                                : fmt::format("{} ({})", what, last_warning));
}

Status CheckHost() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return Unsupported(
        "inputs by eBPF: no /sys/kernel/btf/vmlinux; they need a kernel with "
        "CONFIG_DEBUG_INFO_BTF, as Debian's are");
  }
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) == 0 &&
      space.st_ino != kFirstPidNamespace) {
    return Unsupported(
        "inputs by eBPF: this is a PID namespace of its own, where threads "
        "have other numbers than BPF sees; run it on the host");
  }
  return {};
}

Status CheckLimit(const char* name, uint64_t value, uint64_t min,
                  uint64_t max) {
  if (value < min || value > max) {
    return InvalidArgument("inputs by eBPF: {} is {}, wanted {} to {}", name,
                           value, min, max);
  }
  return {};
}

Status CheckOptions(const InputOptions& options) {
  CLEW_RETURN_IF_ERROR(CheckLimit("ring_bytes", options.ring_bytes,
                                  kRingBytesMin, kRingBytesMax));
  if (!std::has_single_bit(options.ring_bytes)) {
    return InvalidArgument(
        "inputs by eBPF: ring_bytes is {}, wanted a power of two",
        options.ring_bytes);
  }
  CLEW_RETURN_IF_ERROR(CheckLimit("bytes_per_second", options.bytes_per_second,
                                  kBudgetMin, uint64_t{1} << 40));
  CLEW_RETURN_IF_ERROR(
      CheckLimit("call_bytes_max", options.call_bytes_max, 0, kCallBytesMax));
  CLEW_RETURN_IF_ERROR(
      CheckLimit("threads_max", options.threads_max, 1, kThreadsMax));
  if (!options.cgroup.empty() && !options.processes.empty()) {
    return InvalidArgument(
        "inputs by eBPF: both processes and the cgroup {:?} are given, wanted "
        "one of them",
        options.cgroup);
  }
  return {};
}

class BpfInputSource final : public KernelInputSource {
 public:
  BpfInputSource(Skeleton skeleton, const InputOptions& options)
      : skeleton_(std::move(skeleton)),
        by_cgroup_(!options.cgroup.empty()),
        drain_bytes_max_(options.ring_bytes),
        assembler_(options.call_bytes_max) {}

  Status Prepare(const InputOptions& options);
  Status AddProcess(int32_t process) override;
  Status Start() override;
  Result<bool> Wait(int timeout_ms) override;
  int fd() const override { return ring_buffer__epoll_fd(ring_.get()); }
  Status Drain(InputSink& sink) override;
  Status Finish(InputSink& sink) override;
  KernelInputCounts counts() const override;

 private:
  static int OnEvent(void* self, void* data, size_t size);
  Status TakeEvent(std::span<const std::byte> bytes);
  Status FillRules();
  Status FillRequests();
  Status FinishThreads(InputSink& sink);
  KernelInputCounts ReadCounts() const;

  Skeleton skeleton_;
  Ring ring_;
  bool by_cgroup_;
  uint64_t drain_bytes_max_;
  CallAssembler assembler_;
  bool finished_ = false;
  KernelInputCounts final_counts_;  // once finished
  // Within Drain.
  InputSink* sink_ = nullptr;
  uint64_t drained_bytes_ = 0;
  uint64_t drained_events_ = 0;
  Status drain_status_;
};

Status BpfInputSource::FillRules() {
  for (uint32_t number = 0; number < CLEW_RAW_RULES; ++number) {
    const RawRule rule = RuleFor(number);
    if (bpf_map__update_elem(skeleton_->maps.rules, &number, sizeof(number),
                             &rule, sizeof(rule), BPF_ANY) != 0) {
      return Refused("filling the table of system calls", errno);
    }
  }
  return {};
}

Status BpfInputSource::FillRequests() {
  for (const RawRequestRule& rule : RequestRules()) {
    if (bpf_map__update_elem(skeleton_->maps.requests, &rule.request,
                             sizeof(rule.request), &rule.written,
                             sizeof(rule.written), BPF_ANY) != 0) {
      return Refused("filling the table of requests", errno);
    }
  }
  return {};
}

Status BpfInputSource::Prepare(const InputOptions& options) {
  CLEW_RETURN_IF_ERROR(FillRules());
  CLEW_RETURN_IF_ERROR(FillRequests());
  ring_.reset(ring_buffer__new(bpf_map__fd(skeleton_->maps.ring), OnEvent, this,
                               nullptr));
  if (ring_ == nullptr) {
    return Refused("mapping the ring of inputs", errno);
  }
  for (const int32_t process : options.processes) {
    CLEW_RETURN_IF_ERROR(AddProcess(process));
  }
  return {};
}

Status BpfInputSource::AddProcess(int32_t process) {
  if (by_cgroup_) {
    return InvalidArgument("inputs by eBPF: process {} beside a cgroup",
                           process);
  }
  if (process <= 0 || (kill(process, 0) != 0 && errno == ESRCH)) {
    return InvalidArgument("inputs by eBPF: there is no process {}", process);
  }
  const uint8_t one = 1;
  if (bpf_map__update_elem(skeleton_->maps.processes, &process, sizeof(process),
                           &one, sizeof(one), BPF_ANY) != 0) {
    return Refused("watching a process", errno);
  }
  return {};
}

Status BpfInputSource::Start() {
  if (const int error = inputs_bpf__attach(skeleton_.get())) {
    return Refused("attaching to system calls", -error);
  }
  return {};
}

Result<bool> BpfInputSource::Wait(int timeout_ms) {
  epoll_event event = {};
  const int ready = epoll_wait(fd(), &event, 1, timeout_ms);
  if (ready < 0 && errno != EINTR) {
    return SystemError(errno, "waiting for inputs");
  }
  return ready > 0;
}

// From C: no exception may pass. Sinks throw none (they return errors).
int BpfInputSource::OnEvent(void* self, void* data, size_t size) {
  auto& source = *static_cast<BpfInputSource*>(self);
  source.drained_bytes_ += size;
  ++source.drained_events_;
  source.drain_status_ =
      source.TakeEvent({static_cast<const std::byte*>(data), size});
  const bool enough = source.drained_bytes_ >= source.drain_bytes_max_;
  return source.drain_status_ && !enough ? 0 : -ECANCELED;
}

Status BpfInputSource::TakeEvent(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(event, ParseInputEvent(bytes));
  return assembler_.Take(event, *sink_);
}

Status BpfInputSource::Drain(InputSink& sink) {
  sink_ = &sink;
  drained_bytes_ = 0;
  drained_events_ = 0;
  drain_status_ = {};
  const int result = ring_buffer__consume(ring_.get());
  sink_ = nullptr;
  CLEW_RETURN_IF_ERROR(drain_status_);
  if (result < 0 && result != -ECANCELED) {
    return SystemError(-result, "reading the ring of inputs");
  }
  return {};
}

Status BpfInputSource::Finish(InputSink& sink) {
  inputs_bpf__detach(skeleton_.get());
  // Programs that are at work run to their end; they do so within RCU read
  // sections.
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
  do {
    CLEW_RETURN_IF_ERROR(Drain(sink));
  } while (drained_events_ > 0);
  final_counts_ = ReadCounts();
  finished_ = true;
  CLEW_RETURN_IF_ERROR(FinishThreads(sink));
  return assembler_.FinishAll(sink);
}

Status BpfInputSource::FinishThreads(InputSink& sink) {
  const bpf_map* const map = skeleton_->maps.threads;
  uint32_t thread = 0;
  const uint32_t* before = nullptr;
  for (uint32_t i = 0; i < bpf_map__max_entries(map); ++i) {
    uint32_t next = 0;
    if (bpf_map__get_next_key(map, before, &next, sizeof(next)) != 0) {
      return {};
    }
    thread = next;
    before = &thread;
    RawThread rest;
    if (bpf_map__lookup_elem(map, &thread, sizeof(thread), &rest, sizeof(rest),
                             0) == 0) {
      const bool in_call = rest.in_call != 0 && rest.ended == 0;
      final_counts_.units += in_call ? 1 : 0;
      final_counts_.reported += in_call ? 1 : 0;
      CLEW_RETURN_IF_ERROR(assembler_.Finish(thread, rest, sink));
    }
  }
  return {};
}

KernelInputCounts BpfInputSource::ReadCounts() const {
  KernelInputCounts sum;
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) {
    return sum;
  }
  // The kernel rounds each CPU's value up to eight bytes; it is such a number.
  static_assert(sizeof(RawCounts) % 8 == 0);
  std::vector<RawCounts> counts(static_cast<size_t>(cpus));
  const uint32_t zero = 0;
  (void)bpf_map__lookup_elem(skeleton_->maps.counts, &zero, sizeof(zero),
                             counts.data(), counts.size() * sizeof(RawCounts),
                             0);  // fails only for wrong sizes
  for (const RawCounts& cpu : counts) {
    sum.units += cpu.units;
    sum.reported += cpu.reported;
    sum.untracked += cpu.untracked;
    for (size_t i = 0; i < kRawCauses; ++i) {
      sum.lost[i] += cpu.lost[i];
      sum.partial[i] += cpu.partial[i];
    }
  }
  return sum;
}

KernelInputCounts BpfInputSource::counts() const {
  KernelInputCounts counts = finished_ ? final_counts_ : ReadCounts();
  counts.broken = assembler_.broken();
  return counts;
}

Result<Skeleton> LoadSkeleton(const InputOptions& options, bool sees_frames) {
  libbpf_set_print(KeepWarning);
  Skeleton skeleton(inputs_bpf__open());
  if (skeleton == nullptr) {
    return Refused("opening the BPF program", errno);
  }
  auto& settings = *skeleton->rodata;
  if (!options.cgroup.empty()) {
    std::ifstream mounts("/proc/self/mountinfo");
    const std::string text(std::istreambuf_iterator<char>(mounts), {});
    CLEW_ASSIGN_OR_RETURN(cgroup, FindCgroup(options.cgroup, text));
    settings.cgroup_id = cgroup.id;
    settings.cgroup_level = cgroup.level;
  }
  settings.follow_children = options.follow_children ? 1 : 0;
  settings.want_outputs = options.outputs ? 1 : 0;
  settings.sees_frames = sees_frames ? 1 : 0;
  bpf_program__set_autoload(skeleton->progs.PushFrame, sees_frames);
  settings.call_bytes_max = options.call_bytes_max;
  settings.window_bytes_max = options.bytes_per_second / kWindowsPerSecond;
  settings.wakeup_bytes = options.ring_bytes / kWakeupShare;
  bpf_map__set_max_entries(skeleton->maps.ring,
                           static_cast<uint32_t>(options.ring_bytes));
  bpf_map__set_max_entries(skeleton->maps.threads, options.threads_max);
  bpf_map__set_max_entries(skeleton->maps.requests,
                           static_cast<uint32_t>(RequestRules().size()));
  if (const int error = inputs_bpf__load(skeleton.get())) {
    return Refused("loading the BPF program", -error);
  }
  return skeleton;
}

// Programs at functions of the kernel need more of it than those at tracepoints
// do: ftrace, and trampolines. They are attached for a moment, to see.
bool CanAttach(bpf_program* program) {
  bpf_link* const link = bpf_program__attach(program);
  return link != nullptr && bpf_link__destroy(link) == 0;
}

}  // namespace

uint64_t KernelInputCounts::lost_total() const {
  return std::accumulate(lost.begin(), lost.end(), uint64_t{0});
}

Status ProbeInputs() {
  CLEW_ASSIGN_OR_RETURN(source, KernelInputSource::Open({}));
  return source->Start();
}

Result<std::unique_ptr<KernelInputSource>> KernelInputSource::Open(
    const InputOptions& options) {
  CLEW_RETURN_IF_ERROR(CheckOptions(options));
  CLEW_RETURN_IF_ERROR(CheckHost());
  auto skeleton = LoadSkeleton(options, true);
  if (!skeleton || !CanAttach((*skeleton)->progs.PushFrame)) {
    skeleton = LoadSkeleton(options, false);
  }
  if (!skeleton) {
    return std::unexpected(skeleton.error());
  }
  auto source = std::make_unique<BpfInputSource>(std::move(*skeleton), options);
  CLEW_RETURN_IF_ERROR(source->Prepare(options));
  return std::unique_ptr<KernelInputSource>(std::move(source));
}

}  // namespace clew::recorder::bpf
