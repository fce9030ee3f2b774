#include "bench/bpf_inputs/calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "recorder/bpf/input_source.h"

namespace clew::bench {
namespace {

namespace bpf = recorder::bpf;

constexpr int kRounds = 7;
constexpr int kCalls = 50'000;

struct Kind {
  const char* name;
  std::function<void()> call;
};

std::vector<Kind> Kinds() {
  static std::array<char, 65536> buffer;
  const int zeros = open("/dev/zero", O_RDONLY);
  const auto read_some = [zeros](size_t bytes) {
    return [zeros, bytes] { (void)!read(zeros, buffer.data(), bytes); };
  };
  return {{"getpid", [] { syscall(SYS_getpid); }},
          {"clock_gettime, 16 bytes",
           [] { syscall(SYS_clock_gettime, CLOCK_MONOTONIC, buffer.data()); }},
          {"read 64 bytes", read_some(64)},
          {"read 4 KiB", read_some(4096)},
          {"read 64 KiB", read_some(65536)}};
}

double NowNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

class DeafSink final : public bpf::InputSink {
 public:
  Status OnCall(const bpf::InputCall&) override { return {}; }
  Status OnSignal(const bpf::InputSignal&) override { return {}; }
  Status OnLoss(const bpf::InputLoss&) override { return {}; }
  Status OnThreadEnd(const bpf::ThreadName&) override { return {}; }
};

// A child that makes the calls once it is told to.
struct Child {
  pid_t process = -1;
  int start = -1;
  int results = -1;
};

[[noreturn]] void BeChild(const Kind& kind, int start, int results) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char go = 0;
  (void)!read(start, &go, 1);
  for (int round = 0; round < kRounds; ++round) {
    const double begin = NowNanos();
    for (int i = 0; i < kCalls; ++i) {
      kind.call();
    }
    const double nanos = (NowNanos() - begin) / kCalls;
    (void)!write(results, &nanos, sizeof(nanos));
  }
  _exit(0);
}

std::optional<Child> Start(const Kind& kind) {
  std::array<int, 2> start = {};
  std::array<int, 2> results = {};
  if (pipe(start.data()) != 0 || pipe(results.data()) != 0) {
    return std::nullopt;
  }
  Child child;
  child.process = fork();
  if (child.process == 0) {
    BeChild(kind, start[0], results[1]);
  }
  close(start[0]);
  close(results[1]);
  child.start = start[1];
  child.results = results[0];
  return child;
}

struct Measured {
  std::vector<double> nanos;  // sorted
  bpf::KernelInputCounts counts;
};

// `watch` says who: nothing, another process or the child.
enum class Watched : uint8_t { kNothing, kOther, kChild };

Result<Measured> Measure(const Kind& kind, Watched watched, uint64_t budget) {
  const auto child = Start(kind);
  if (!child) {
    return SystemError(errno, "cannot start a child");
  }
  std::unique_ptr<bpf::KernelInputSource> source;
  DeafSink sink;
  if (watched != Watched::kNothing) {
    const pid_t who = watched == Watched::kChild ? child->process : getppid();
    CLEW_ASSIGN_OR_RETURN(
        opened, bpf::KernelInputSource::Open({.processes = {who},
                                              .ring_bytes = 64 << 20,
                                              .bytes_per_second = budget}));
    source = std::move(opened);
    CLEW_RETURN_IF_ERROR(source->Start());
  }
  (void)!write(child->start, "g", 1);
  while (waitpid(child->process, nullptr, WNOHANG) == 0) {
    if (source == nullptr) {
      usleep(10'000);
      continue;
    }
    CLEW_RETURN_IF_ERROR(source->Wait(10));
    CLEW_RETURN_IF_ERROR(source->Drain(sink));
  }
  Measured measured;
  if (source != nullptr) {
    CLEW_RETURN_IF_ERROR(source->Finish(sink));
    measured.counts = source->counts();
  }
  measured.nanos.resize(kRounds);
  (void)!read(child->results, measured.nanos.data(), kRounds * sizeof(double));
  close(child->start);
  close(child->results);
  std::ranges::sort(measured.nanos);
  return measured;
}

struct Mode {
  const char* name;
  Watched watched;
  uint64_t budget;
};
constexpr Mode kModes[] = {{"free", Watched::kNothing, 0},
                           {"other", Watched::kOther, 1 << 20},
                           {"watched", Watched::kChild, uint64_t{1} << 36},
                           {"over", Watched::kChild, 100'000}};

}  // namespace

Status MeasureCalls(nlohmann::json& rows) {
  fmt::print("{} rounds of {} calls; nanoseconds a call\n\n", kRounds, kCalls);
  fmt::print("{:<26}{:<10}{:>8}{:>8}{:>8}{:>12}{:>10}\n", "call", "mode",
             "median", "min", "max", "reported", "lost");
  for (const Kind& kind : Kinds()) {
    for (const Mode& mode : kModes) {
      CLEW_ASSIGN_OR_RETURN(measured, Measure(kind, mode.watched, mode.budget));
      const std::vector<double>& nanos = measured.nanos;
      fmt::print("{:<26}{:<10}{:>8.0f}{:>8.0f}{:>8.0f}{:>12}{:>10}\n",
                 kind.name, mode.name, nanos[kRounds / 2], nanos.front(),
                 nanos.back(), measured.counts.reported,
                 measured.counts.lost_total());
      rows.push_back({{"suite", "calls"},
                      {"call", kind.name},
                      {"mode", mode.name},
                      {"ns_median", nanos[kRounds / 2]},
                      {"ns_min", nanos.front()},
                      {"ns_max", nanos.back()},
                      {"reported", measured.counts.reported},
                      {"lost", measured.counts.lost_total()}});
    }
  }
  return {};
}

}  // namespace clew::bench
