#ifndef CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_
#define CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/units.h"
#include "recorder/pt_encoder/encoder_config.h"
#include "recorder/pt_encoder/pt_sink.h"

namespace clew::recorder {

// Why tracing begins (again).
enum class EnableCause : uint8_t {
  // The kernel returns to the thread that was traced before: after a system
  // call, an interrupt, or into a signal handler. MODE.Exec, TIP.PGE.
  kKernelReturn,
  // The kernel switches a thread in, and with it its trace on (TraceEn 0 to 1):
  // TSC, TMA, CBR, MODE.Exec, TIP.PGE. Required when the core's thread changes
  // and for the first event of a stream, which also gets a PSB+.
  kSwitchIn,
};

// An MTC is written for each of up to this many periods that passed at once;
// after more, the core counts as having slept: TSC and TMA.
inline constexpr uint32_t kMtcBurstMax = 16;

// Writes the Intel PT stream of one core from the events of the user-mode
// instructions that it retires, as a CPU with branch tracing of user mode only
// would. Instructions that are no branch, and direct jumps, are no events.
//
// Order of calls: the branch of an instruction, then AdvanceTime with the time
// at which the instruction retired (not necessarily after each); whatever is
// encoded afterwards is later than the timing packets that this wrote.
//
// Every event names where execution goes on, because a PSB+ may be due there.
// States: disabled (at first), enabled. A call REQUIRES the state that its
// comment names; CLEW_CHECK refuses another.
//
// The hot path (Conditional) allocates nothing and takes a few nanoseconds; see
// bench/pt_encoder. Not thread-safe; one core, one encoder, one thread.
class CoreEncoder {
 public:
  // `sink` must outlive the encoder. REQUIRES: Validate(config).
  CoreEncoder(const EncoderConfig& config, PtSink& sink);
  CoreEncoder(const CoreEncoder&) = delete;
  CoreEncoder& operator=(const CoreEncoder&) = delete;

  // Disabled -> enabled. `ip` executes next.
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

  // Enabled. CALL rel32. Writes nothing. `return_ip` is the next instruction
  // in memory, `target` where it goes on (a call of the next instruction does
  // not count as a call: hardware does not compress its RET).
  void DirectCall(TraceeAddr return_ip, TraceeAddr target) {
    if (return_ip != target) {
      PushReturn(return_ip.as_int());
    }
  }

  // Enabled. JMP and CALL through a register or memory.
  void IndirectJump(TraceeAddr target);
  void IndirectCall(TraceeAddr return_ip, TraceeAddr target);

  // Enabled. RET to `target`.
  void Return(TraceeAddr target);

  // Any state. The time is `now`, in ticks since the TSC was 0; not before an
  // earlier `now`. Writes the MTC packets due since.
  void AdvanceTime(TscTicks now) {
    now_ = now.as_int();
    if (now_ >= next_mtc_) [[unlikely]] {
      WriteMtcs();
    }
  }

  // Any state. Events were lost since the last call; execution goes on at
  // `next_ip`, or tracing is off where it is nullopt. OVF, TSC, TMA, and FUP
  // where it is on. Branches not yet written are dropped, as hardware does.
  void Overflow(std::optional<TraceeAddr> next_ip);

  // Any state. Hands all bytes to the sink, with pending branches in a TNT
  // packet of their own. Encoding may go on.
  void Flush();

  bool enabled() const { return enabled_; }
  // Written to the stream so far, without pending branches.
  uint64_t bytes_written() const {
    return exchanged_bytes_ + static_cast<uint64_t>(pos_ - begin_);
  }

 private:
  static constexpr uint32_t kReturnStackSize = 64;  // as on hardware

  void AddTntBit(bool taken, uint64_t next_ip);
  void PushReturn(uint64_t ip);
  bool PopReturnIfMatched(uint64_t target);
  void ClearReturnStack() { return_count_ = 0; }
  void ReserveRoom();
  void Exchange();
  void FlushTnt();
  void AfterBranch(uint64_t next_ip);
  void WritePsb(std::optional<uint64_t> ip);
  void WriteTip(uint64_t target);
  void WriteMtcs();
  void WriteTscTma();
  void WriteCycIfDue();
  void ScheduleMtc();
  uint64_t CtcAt(uint64_t tsc) const;
  uint64_t TscOfCtc(uint64_t ctc) const;
  void Put(const uint8_t* bytes, size_t count);
  void PutByte(uint8_t byte) { *pos_++ = byte; }
  void PutIp(uint8_t opcode, uint64_t ip);

  const EncoderConfig config_;
  const uint32_t tnt_max_;
  PtSink& sink_;
  uint8_t* begin_ = nullptr;  // of the sink's room
  uint8_t* pos_ = nullptr;
  uint8_t* end_ = nullptr;
  uint64_t exchanged_bytes_ = 0;
  uint64_t next_psb_bytes_ = 0;  // of bytes_written()

  bool enabled_ = false;
  uint32_t tnt_count_ = 0;  // < tnt_max_ between events
  uint64_t tnt_bits_ = 0;   // the oldest branch is the highest bit
  uint64_t last_ip_ = 0;

  uint64_t now_ = 0;
  uint64_t next_mtc_ = UINT64_MAX;  // TSC at which the next MTC is due
  uint64_t mtc_count_ = 0;          // CTC >> mtc_period of the last MTC
  uint64_t cyc_since_ = 0;          // TSC of the last CYC

  uint32_t return_top_ = 0;
  uint32_t return_count_ = 0;
  std::array<uint64_t, kReturnStackSize> return_stack_ = {};
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PT_ENCODER_CORE_ENCODER_H_
