#ifndef CLEW_RECORDER_BPF_CLOCK_SAMPLES_H_
#define CLEW_RECORDER_BPF_CLOCK_SAMPLES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/units.h"
#include "recorder/bpf/input_event.h"

namespace clew::recorder::bpf {

// Both clocks at one moment: CLOCK_MONOTONIC was read after `before` and before
// `after`.
struct ClockSample {
  TscTicks before;
  TscTicks after;
  MonotonicNanos monotonic;
};

// The tightest of a few reads.
ClockSample ReadClocks();

// Places times of CLOCK_MONOTONIC, which BPF programs read, on the TSC, in
// which Intel PT counts.
//
// On x86-64 the kernel computes the one from the other, with a rate that it
// corrects a little now and then (adjtimex). So between two moments at which
// both were read the rate is near the average there. How near is an assumption:
// kRateError. The true tick is in the interval as long as that holds; each
// millisecond to the nearest sample makes it wider by 1 us.
//
// Not thread-safe. Memory is constant.
class ClockSamples {
 public:
  static constexpr double kRateError = 1e-3;

  // Takes a first sample, and a second one a millisecond later.
  explicit ClockSamples(std::function<ClockSample()> read = ReadClocks);

  // To be called now and then, before events up to now are converted.
  void Sample();

  // nullopt for 0 and for times before the first sample.
  std::optional<TscInterval> ToTsc(MonotonicNanos time) const;

 private:
  double TicksPerNano() const;

  std::function<ClockSample()> read_;
  ClockSample first_;
  ClockSample previous_;
  ClockSample last_;
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_CLOCK_SAMPLES_H_
