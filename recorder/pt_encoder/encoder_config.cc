#include "recorder/pt_encoder/encoder_config.h"

#include <algorithm>
#include <bit>

namespace clew::recorder {
namespace {

// Bits of IA32_RTIT_CTL. Source: Intel SDM vol. 3C, "Intel Processor Trace",
// "IA32_RTIT_CTL MSR"; Linux, arch/x86/events/intel/pt.c, the PMU_FORMAT_ATTRs.
// Bit 0 is perf's own "pt" (pass-through).
constexpr uint64_t kPassThrough = 1u << 0;
constexpr uint64_t kCycEn = 1u << 1;
constexpr uint64_t kMtcEn = 1u << 9;
constexpr uint64_t kTscEn = 1u << 10;
constexpr uint64_t kDisRetc = 1u << 11;
constexpr uint64_t kBranchEn = 1u << 13;
constexpr unsigned kMtcFreqShift = 14;
constexpr unsigned kCycThreshShift = 19;
constexpr unsigned kPsbFreqShift = 24;
constexpr uint32_t kPsbPeriodLeastBytes = 2048;  // PSBFreq 0

// The TMA packet has 9 bits for the TSC ticks since the last crystal tick.
constexpr uint32_t kTicksPerCrystalTickMax = 511;

Status ValidateTiming(const EncoderConfig& config) {
  if (!config.tsc && (config.mtc || config.cyc)) {
    return InvalidArgument(
        "PT encoder: mtc and cyc need tsc, without which they mean nothing");
  }
  if (config.time_at_sync && (config.mtc || config.cyc)) {
    return InvalidArgument(
        "PT encoder: mtc and cyc tell the time at each branch, which is not "
        "known");
  }
  if (config.mtc_period > 15) {
    return InvalidArgument("PT encoder: mtc_period is {}, wanted 0 to 15",
                           config.mtc_period);
  }
  if (config.cyc_threshold > 12) {
    return InvalidArgument("PT encoder: cyc_threshold is {}, wanted 0 to 12",
                           config.cyc_threshold);
  }
  const uint32_t numerator = config.tsc_ctc_numerator;
  const uint32_t denominator = config.tsc_ctc_denominator;
  if (denominator == 0 || numerator < denominator ||
      numerator / denominator > kTicksPerCrystalTickMax) {
    return InvalidArgument(
        "PT encoder: TSC ticks per crystal tick are {}/{}, wanted 1 to {}",
        numerator, denominator, kTicksPerCrystalTickMax);
  }
  return {};
}

}  // namespace

Status Validate(const EncoderConfig& config) {
  if (config.code_bits != 64 && config.code_bits != 32) {
    return InvalidArgument("PT encoder: code_bits is {}, wanted 64 or 32",
                           config.code_bits);
  }
  if (!std::has_single_bit(config.psb_period_bytes) ||
      config.psb_period_bytes < 128 || config.psb_period_bytes > (64u << 20)) {
    return InvalidArgument(
        "PT encoder: psb_period_bytes is {}, wanted a power of two from 128 to "
        "64 Mi",
        config.psb_period_bytes);
  }
  if (config.tsc_bus_ratio < 1 || config.core_bus_ratio > 255 ||
      config.core_bus_ratio < config.tsc_bus_ratio ||
      config.core_bus_ratio % config.tsc_bus_ratio != 0) {
    return InvalidArgument(
        "PT encoder: core_bus_ratio is {}, wanted a multiple of tsc_bus_ratio, "
        "which is {}, up to 255",
        config.core_bus_ratio, config.tsc_bus_ratio);
  }
  return ValidateTiming(config);
}

uint64_t PerfConfigBits(const EncoderConfig& config) {
  uint64_t bits = kPassThrough | kBranchEn;
  bits |= config.cyc ? kCycEn : 0;
  bits |= config.mtc ? kMtcEn : 0;
  bits |= config.tsc ? kTscEn : 0;
  bits |= config.return_compression ? 0 : kDisRetc;
  bits |= uint64_t{config.mtc_period} << kMtcFreqShift;
  bits |= uint64_t{config.cyc_threshold} << kCycThreshShift;
  const uint32_t psb_bytes =
      std::max(config.psb_period_bytes, kPsbPeriodLeastBytes);
  const auto psb_freq =
      static_cast<uint64_t>(std::countr_zero(psb_bytes / kPsbPeriodLeastBytes));
  return bits | psb_freq << kPsbFreqShift;
}

}  // namespace clew::recorder
