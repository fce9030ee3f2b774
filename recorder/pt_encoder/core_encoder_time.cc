// The clock of a CoreEncoder: TSC, TMA, MTC and CYC packets.

#include "recorder/pt_encoder/core_encoder.h"

namespace clew::recorder {

// Both functions divide first, so that no product overflows.

// The crystal's ticks up to `tsc`.
uint64_t CoreEncoder::CrystalTicksAt(uint64_t tsc) const {
  const uint64_t numerator = config_.tsc_ctc_numerator;
  const uint64_t denominator = config_.tsc_ctc_denominator;
  return tsc / numerator * denominator +
         tsc % numerator * denominator / numerator;
}

// The first TSC value at or after the crystal's tick `ctc`.
uint64_t CoreEncoder::TscOfCrystalTick(uint64_t ctc) const {
  const uint64_t numerator = config_.tsc_ctc_numerator;
  const uint64_t denominator = config_.tsc_ctc_denominator;
  return ctc / denominator * numerator +
         (ctc % denominator * numerator + denominator - 1) / denominator;
}

// SDM, "TSC Packet": it comes in PSB+, after an overflow, when tracing is
// switched on and on wake-up from deep sleep; never on a mere return to user
// mode. "TMA Packet": after each TSC if MTC packets are on.
void CoreEncoder::WriteTscTma() {
  if (!config_.tsc) {
    return;
  }
  WriteCyc(now_, 0);
  pos_ = packets::PutTsc(pos_, now_);
  cyc_since_ = now_;
  if (!config_.mtc) {
    return;
  }
  const uint64_t ctc = CrystalTicksAt(now_);
  pos_ = packets::PutTma(pos_, ctc, now_ - TscOfCrystalTick(ctc));
  mtc_count_ = ctc >> config_.mtc_period;
  next_mtc_ = TscOfCrystalTick((mtc_count_ + 1) << config_.mtc_period);
}

// SDM, "MTC Packet": sent each time that bit CTC[mtc_period] toggles, carries
// CTC[mtc_period+7 : mtc_period]. Branches that retired before go out first, so
// that the packets stand in the order of time.
void CoreEncoder::WriteMtcs() {
  FlushTntAt(next_mtc_);
  ReserveRoom();
  // Where MTCs come before a TNT packet is ever full, a PSB+ must not wait.
  tnt_limit_ = IsPsbDue() ? 1 : tnt_max_;
  const uint64_t count = CrystalTicksAt(now_) >> config_.mtc_period;
  if (count - mtc_count_ > kMtcBurstMax) {
    WriteTscTma();
    return;
  }
  while (mtc_count_ < count) {
    ReserveRoom();
    WriteCyc(next_mtc_, 0);
    pos_ = packets::PutMtc(pos_, ++mtc_count_);
    next_mtc_ = TscOfCrystalTick((mtc_count_ + 1) << config_.mtc_period);
  }
}

// SDM, "CYC Packet": the cycles since the last one, before a packet that may
// have one, if at least the threshold passed. Before timing packets we send it
// regardless of the threshold, so that no decoder has to guess the rest.
void CoreEncoder::WriteCyc(uint64_t until_tsc, uint64_t threshold) {
  if (!config_.cyc || !started_ || until_tsc <= cyc_since_) {
    return;
  }
  const uint64_t cycles = (until_tsc - cyc_since_) * cycles_per_tick_;
  if (cycles < threshold) {
    return;
  }
  pos_ = packets::PutCyc(pos_, cycles);
  cyc_since_ = until_tsc;
}

}  // namespace clew::recorder
