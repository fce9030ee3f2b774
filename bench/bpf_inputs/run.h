#ifndef CLEW_BENCH_BPF_INPUTS_RUN_H_
#define CLEW_BENCH_BPF_INPUTS_RUN_H_

#include <cstdint>
#include <string>

#include "bench/bpf_inputs/threads.h"
#include "common/result.h"
#include "recorder/bpf/input_source.h"

namespace clew::bench {

struct LoadRecorder {
  uint64_t bytes_per_second = 0;  // 0: there is none
  // Between two times that it empties the ring, whatever is in it; 0: as it
  // comes.
  uint32_t pause_ms = 0;
};

// One run of the load. What is of a recorder is 0 without one.
struct LoadRun {
  double seconds = 0;
  double child_cpu_s = 0;
  double recorder_cpu_s = 0;  // while it records; ours without one
  uint64_t made = 0;          // by the load's own count
  recorder::bpf::KernelInputCounts counts;
  // What the recorder was told: calls, calls that are missing, and how many
  // were not where the plan has them.
  uint64_t calls = 0;
  uint64_t lost = 0;
  uint64_t misplaced = 0;
  uint64_t log_bytes = 0;

  double rate() const { return static_cast<double>(made) / seconds; }
  // Each call was told or counted, by everybody alike, and at its place.
  bool is_right() const;
};

// Runs it, recorded as by `clew record --inputs` with that --inputs-rate, but
// for the sync at the end. `log_path` becomes inputs.pb. Fails as
// KernelInputSource::Open does; kUnsupported if the load fails.
[[nodiscard]] Result<LoadRun> RunLoad(const CallPlan& plan,
                                      const LoadRecorder& how,
                                      const std::string& log_path);

}  // namespace clew::bench

#endif  // CLEW_BENCH_BPF_INPUTS_RUN_H_
