#ifndef CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_
#define CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/units.h"
#include "common/x86/branch.h"
#include "recorder/pt_encoder/encoder_config.h"
#include "recorder/pt_encoder/packets.h"
#include "recorder/pt_encoder/pt_sink.h"

namespace clew::recorder {

// Why tracing begins (again).
enum class EnableCause : uint8_t {
  // The kernel returns to the thread that was traced before: after a system
  // call, an interrupt, or into a signal handler. TIP.PGE.
  kKernelReturn,
  // The kernel switches a thread in, and with it its trace on (TraceEn 0 to 1):
  // TSC, TMA (in a PSB+ where one is due), CBR, TIP.PGE. Wanted whenever the
  // core is given to a thread.
  kSwitchIn,
  // As kKernelReturn, with the time before it: TSC, TMA, TIP.PGE.
  kTimed,
};

// An MTC is written for each of up to this many periods that passed at once;
// after more, the core counts as having slept: TSC and TMA.
inline constexpr uint32_t kMtcBurstMax = 16;

// Writes the Intel PT stream of one core from the events of the user-mode
// instructions that it retires, as a CPU with branch tracing of user mode only
// would. Direct jumps, and instructions that are not branches, are not events.
//
// Order of calls: AdvanceTime with the time at which an instruction retires,
// then its branch event. What is encoded after a timing packet retired at its
// time or later; what was encoded before, at its time or earlier. A producer
// that advances time too late makes streams whose times are wrong.
//
// Branch events name where execution goes on, because a PSB+ may be due there.
// States: disabled (at first), enabled. A call REQUIRES the state that its
// comment names; a CLEW_CHECK refuses another.
//
// The hot path (Conditional) allocates nothing; bench/pt_encoder prints what it
// costs. Not thread-safe: one core, one encoder, one thread at a time.
class CoreEncoder {
 public:
  // `sink` must outlive the encoder. REQUIRES: Validate(config).
  CoreEncoder(const EncoderConfig& config, PtSink& sink);
  CoreEncoder(const CoreEncoder&) = delete;
  CoreEncoder& operator=(const CoreEncoder&) = delete;

  // Disabled -> enabled. `ip` executes next. The first one of a stream, and one
  // at which it is due, writes a PSB+ before.
  void Enable(TraceeAddr ip, EnableCause cause);

  // Enabled -> disabled, after a far transfer into the kernel (SYSCALL, INT,
  // INT3) that retired: TIP.PGD without address.
  void FarTransfer();

  // Enabled -> disabled, asynchronously or by a fault: FUP with `next_ip`, the
  // instruction that did not retire, and TIP.PGD. A signal is this, or
  // FarTransfer, and then Enable at its handler.
  void Interrupt(TraceeAddr next_ip);

  // Enabled. JCC, LOOP, JRCXZ: whether it was taken, and where it goes on.
  void Conditional(bool taken, TraceeAddr next_ip) {
    AddTntBit(taken, next_ip.as_int());
  }

  // Enabled. So many of Conditional at once, none of them taken. REQUIRES:
  // EncoderConfig::time_at_sync, as no PSB+ is due between them.
  void NotTaken(uint32_t count) {
    if (!enabled_) [[unlikely]] {
      RefuseState();
    }
    while (count >= tnt_limit_ - tnt_count_) [[unlikely]] {
      count -= tnt_limit_ - tnt_count_;
      tnt_bits_ <<= tnt_limit_ - tnt_count_;
      tnt_count_ = tnt_limit_;
      FlushTnt();
    }
    tnt_bits_ <<= count;
    tnt_count_ += count;
  }

  // Enabled. CALL rel32: writes nothing. `return_ip` is the next instruction in
  // memory, `target` where it goes on.
  void DirectCall(TraceeAddr return_ip, TraceeAddr target) {
    // To call the next instruction is how code learns where it is: no call to
    // hardware and decoders.
    if (return_ip != target) {
      PushReturn(return_ip.as_int());
    }
  }

  // Enabled. JMP and CALL through a register or memory.
  void IndirectJump(TraceeAddr target);
  void IndirectCall(TraceeAddr return_ip, TraceeAddr target);

  // Enabled. RET to `target`.
  void Return(TraceeAddr target);

  // Enabled. The event of a near branch of this class, if it has one: `behind`
  // is the next instruction in memory, `next_ip` where it goes on.
  void Branch(x86::BranchClass branch_class, TraceeAddr behind,
              TraceeAddr next_ip) {
    switch (branch_class) {
      case x86::BranchClass::kConditional:
        // Taken and not taken are the same to a branch of the next instruction.
        Conditional(next_ip != behind, next_ip);
        break;
      case x86::BranchClass::kDirectCall:
        DirectCall(behind, next_ip);
        break;
      case x86::BranchClass::kIndirectCall:
        IndirectCall(behind, next_ip);
        break;
      case x86::BranchClass::kIndirectJump:
        IndirectJump(next_ip);
        break;
      case x86::BranchClass::kReturn:
        Return(next_ip);
        break;
      case x86::BranchClass::kNone:
      case x86::BranchClass::kRepString:
      case x86::BranchClass::kDirectJump:
      case x86::BranchClass::kFar:
        break;
    }
  }

  // Any state. The time is `now`, in ticks since the TSC was 0; > 0 (perf takes
  // 0 for "not known") and not before an earlier `now`. Writes the MTC packets
  // due since.
  void AdvanceTime(TscTicks now) {
    now_ = now.as_int();
    if (now_ >= next_mtc_) [[unlikely]] {
      WriteMtcs();
    }
  }

  // Any state. Writes the time of AdvanceTime, in a PSB+ where one is due: what
  // was encoded before retired by then. Execution goes on at `next_ip` if
  // tracing is on.
  void Sync(TraceeAddr next_ip);

  // Any state. Events were lost since the last call; execution goes on at
  // `next_ip`, or tracing is off where it is nullopt. OVF, TSC, TMA, and FUP
  // where it is on. Branches not yet written are dropped, as hardware does.
  void Overflow(std::optional<TraceeAddr> next_ip);

  // Any state. Hands all bytes to the sink, with pending branches in a TNT
  // packet of their own. Encoding may go on.
  void Flush();

  bool enabled() const { return enabled_; }
  // Bytes of the stream so far, without pending branches.
  uint64_t bytes_written() const {
    return exchanged_bytes_ + static_cast<uint64_t>(pos_ - begin_);
  }

 private:
  static constexpr uint32_t kReturnStackSize = 64;  // as decoders assume

  void AddTntBit(bool taken, uint64_t next_ip) {
    if (!enabled_) [[unlikely]] {
      RefuseState();
    }
    tnt_bits_ = tnt_bits_ << 1 | (taken ? 1 : 0);
    if (++tnt_count_ == tnt_limit_) [[unlikely]] {
      FlushTnt();
      WritePsbIfDue(next_ip);
    }
  }
  void PushReturn(uint64_t ip) {
    return_stack_[return_top_++ % kReturnStackSize] = ip;
    return_count_ += return_count_ < kReturnStackSize ? 1 : 0;
  }
  bool PopReturnIfMatched(uint64_t target);
  [[noreturn]] void RefuseState() const;
  void RequireEnabled(bool enabled) const {
    if (enabled_ != enabled) [[unlikely]] {
      RefuseState();
    }
  }

  void ReserveRoom();
  void Exchange();
  void FlushTnt();
  void FlushTntAt(uint64_t tsc);
  void WriteTip(uint64_t target);
  void WriteIp(packets::IpPacket packet, uint64_t ip);
  void WriteMode();
  void WritePsbIfDue(uint64_t next_ip) {
    if (!config_.time_at_sync && IsPsbDue()) [[unlikely]] {
      WritePsb(next_ip);
    }
  }
  bool IsPsbDue() const { return bytes_written() >= next_psb_bytes_; }
  void WritePsb(std::optional<uint64_t> next_ip);
  void WriteTscTma();
  void WriteMtcs();
  void WriteCyc(uint64_t until_tsc, uint64_t threshold);
  uint64_t CrystalTicksAt(uint64_t tsc) const;
  uint64_t TscOfCrystalTick(uint64_t ctc) const;

  const EncoderConfig config_;
  const uint32_t tnt_max_;
  const uint64_t cyc_threshold_;  // in cycles
  const uint64_t cycles_per_tick_;
  PtSink& sink_;
  uint8_t* begin_ = nullptr;  // of the sink's room
  uint8_t* pos_ = nullptr;
  uint8_t* end_ = nullptr;
  uint64_t exchanged_bytes_ = 0;
  uint64_t next_psb_bytes_ = 0;  // of bytes_written()

  bool enabled_ = false;
  bool started_ = false;    // the first PSB+ is written
  bool mode_told_ = false;  // by a MODE.Exec since the last PSB
  uint32_t tnt_limit_;      // branches to collect: tnt_max_, 1 if a PSB is due
  uint32_t tnt_count_ = 0;  // < tnt_limit_ between events
  uint64_t tnt_bits_ = 0;   // the oldest branch is the highest bit
  uint64_t last_ip_ = 0;

  uint64_t now_ = 0;
  uint64_t next_mtc_ = UINT64_MAX;  // TSC at which the next MTC is due
  uint64_t mtc_count_ = 0;          // CTC >> mtc_period of the last MTC or TMA
  uint64_t cyc_since_ = 0;          // TSC of the last CYC

  uint32_t return_top_ = 0;
  uint32_t return_count_ = 0;
  std::array<uint64_t, kReturnStackSize> return_stack_ = {};
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_
