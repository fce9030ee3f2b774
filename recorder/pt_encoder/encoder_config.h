#ifndef CLEW_RECORDER_PT_ENCODER_ENCODER_CONFIG_H_
#define CLEW_RECORDER_PT_ENCODER_ENCODER_CONFIG_H_

#include <cstdint>

#include "common/result.h"

namespace clew::recorder {

// What IA32_RTIT_CTL, CPUID leaf 0x15 and the clock ratio say on hardware. The
// defaults are those of a 1 GHz invariant TSC on a 25 MHz crystal, so that with
// one tick per instruction an MTC comes every 40 * 2^6 = 2560 instructions.
struct EncoderConfig {
  // The mode of all code: 64, or 32 (a program of compatibility mode).
  uint32_t code_bits = 64;

  // A RET to where its CALL came from costs one TNT bit instead of a TIP.
  bool return_compression = true;
  // TNT packets of up to 47 branches; otherwise of up to 6.
  bool long_tnt = true;
  // A PSB+ at the latest once so many bytes came since the last one. A power of
  // two; hardware has 2 KiB to 64 MiB, tests may take less.
  uint32_t psb_period_bytes = 4096;
  // The time is told at CoreEncoder::Enable and Sync alone, and a PSB+ comes
  // there alone: for a producer that does not know it at each branch. There are
  // no MTC and CYC packets then.
  bool time_at_sync = false;

  bool tsc = true;  // TSC packets; off: no timing at all (mtc, cyc must be off)
  bool mtc = true;  // MTC (and TMA) packets
  bool cyc = false;  // CYC packets
  // An MTC packet every 2^mtc_period crystal ticks; 0..15.
  uint32_t mtc_period = 6;
  // No CYC packet before 2^(cyc_threshold - 1) cycles passed, 0: before each
  // packet that may have one; 0..12.
  uint32_t cyc_threshold = 0;
  // TSC ticks = crystal ticks * numerator / denominator; both > 0. Better a
  // whole number: libipt rounds at each MTC, so that its time drifts otherwise.
  uint32_t tsc_ctc_numerator = 40;
  uint32_t tsc_ctc_denominator = 1;
  // Clocks over the bus clock (100 MHz): the TSC's, which perf calls the
  // maximum non-turbo ratio, and the core's, which CBR packets tell; 1..255.
  // The core's must be a whole multiple, so that a TSC tick is that many
  // cycles.
  //
  // Between timing packets perf takes an instruction for 2 * tsc / core ticks.
  // With a clock that counts instructions that must be less than 1, or perf
  // finds branches to be later than the switch to the next thread and gives
  // them to that one.
  uint32_t tsc_bus_ratio = 10;
  uint32_t core_bus_ratio = 40;
};

// kInvalidArgument, naming the field, if a value is out of its range.
[[nodiscard]] Status Validate(const EncoderConfig& config);

// The value for perf_event_attr::config that asks hardware for this, in the
// format of /sys/bus/event_source/devices/intel_pt/format (the bits of
// IA32_RTIT_CTL). A psb_period_bytes below hardware's least counts as that.
uint64_t PerfConfigBits(const EncoderConfig& config);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_ENCODER_CONFIG_H_
