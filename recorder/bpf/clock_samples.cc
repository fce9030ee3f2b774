#include "recorder/bpf/clock_samples.h"

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <utility>

namespace clew::recorder::bpf {
namespace {

constexpr int kReads = 8;
constexpr uint64_t kFirstGapNs = 1'000'000;

uint64_t MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

// What TSC reads after a fence cannot have happened before what is before it.
uint64_t Ticks() {
  _mm_lfence();
  const uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
}

double Signed(uint64_t a, uint64_t b) {  // a - b
  return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a);
}

// Where `time` is on the TSC, by a sample and a rate that is off by at most
// ClockSamples::kRateError.
struct Bounds {
  double lo;  // ticks after sample.before
  double hi;
};
Bounds From(const ClockSample& sample, MonotonicNanos time, double rate) {
  const double nanos = Signed(time.as_int(), sample.monotonic.as_int());
  const double error = ClockSamples::kRateError;
  // Behind the sample a faster clock is later, before it earlier.
  const double slow = nanos * rate * (nanos >= 0 ? 1 - error : 1 + error);
  const double fast = nanos * rate * (nanos >= 0 ? 1 + error : 1 - error);
  return {slow, fast + Signed(sample.after.as_int(), sample.before.as_int())};
}

uint64_t Place(uint64_t ticks, double offset) {
  return static_cast<uint64_t>(std::max<int64_t>(
      0, static_cast<int64_t>(ticks) + static_cast<int64_t>(offset)));
}

TscInterval Around(const ClockSample& sample, MonotonicNanos time,
                   double rate) {
  const Bounds bounds = From(sample, time, rate);
  return {TscTicks(Place(sample.before.as_int(), bounds.lo - 1)),
          TscTicks(Place(sample.before.as_int(), bounds.hi + 1))};
}

}  // namespace

ClockSample ReadClocks() {
  ClockSample best = {};
  for (int i = 0; i < kReads; ++i) {
    const uint64_t before = Ticks();
    const uint64_t now = MonotonicNow();
    const uint64_t after = Ticks();
    if (i == 0 || after - before < best.after.as_int() - best.before.as_int()) {
      best = {TscTicks(before), TscTicks(after), MonotonicNanos(now)};
    }
  }
  return best;
}

ClockSamples::ClockSamples(std::function<ClockSample()> read)
    : read_(std::move(read)),
      first_(read_()),
      previous_(first_),
      last_(first_) {
  while (last_.monotonic.as_int() - first_.monotonic.as_int() < kFirstGapNs) {
    last_ = read_();
  }
}

void ClockSamples::Sample() {
  previous_ = last_;
  last_ = read_();
}

double ClockSamples::TicksPerNano() const {
  // The middles: the error of the brackets is shared by both ends.
  const double ticks = (Signed(last_.before.as_int(), first_.before.as_int()) +
                        Signed(last_.after.as_int(), first_.after.as_int())) /
                       2;
  return ticks / Signed(last_.monotonic.as_int(), first_.monotonic.as_int());
}

std::optional<TscInterval> ClockSamples::ToTsc(MonotonicNanos time) const {
  if (time.as_int() == 0 || time < first_.monotonic) {
    return std::nullopt;
  }
  const double rate = TicksPerNano();
  TscInterval best = Around(last_, time, rate);
  for (const ClockSample* sample : {&previous_, &first_}) {
    const TscInterval other = Around(*sample, time, rate);
    best = {std::max(best.lo, other.lo), std::min(best.hi, other.hi)};
  }
  if (best.lo > best.hi) {  // the assumption does not hold
    return std::nullopt;
  }
  return best;
}

}  // namespace clew::recorder::bpf
