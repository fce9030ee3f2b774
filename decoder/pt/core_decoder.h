#ifndef CLEW_DECODER_PT_CORE_DECODER_H_
#define CLEW_DECODER_PT_CORE_DECODER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/stream.h"
#include "common/units.h"
#include "decoder/pt/flow.h"
#include "decoder/pt/timing_edges.h"

namespace clew::decoder {

// PT bytes of one core without a hole in them.
struct AuxPiece {
  uint64_t aux_offset = 0;  // of the first byte, in the core's AUX area
  std::span<const std::byte> bytes;
  // Why there is a hole before this piece; empty for the first.
  std::string hole;
  uint64_t hole_bytes = 0;  // 0 where not known
};

inline constexpr TscTicks kTscUnknown{UINT64_MAX};

// What a core did, in order. Upper bounds are kTscUnknown and lower bounds 0
// where no timing packet gives one.
struct CoreBlock {
  TraceeAddr ip;
  TraceeAddr end_ip;
  uint32_t insn_count = 0;
  TscInterval time;
  bool interrupted = false;
  bool is_syscall = false;
  uint8_t code_bits = 64;
};
struct CoreEnter {  // user mode begins at `ip`, or is resumed after a gap
  TraceeAddr ip;
  TscInterval time;
  // The thread's trace was switched on with it (TimingEdges).
  SwitchedOn switched_on = SwitchedOn::kMaybe;
};
struct CoreGap {
  GapCause cause = GapCause::kOverflow;
  TscInterval time;
  uint64_t aux_offset = 0;
  uint64_t bytes = 0;
  TraceeAddr ip;
  std::string detail;
  // Where decoding goes on after an error, for people; else empty.
  std::string resumes;
};

// Takes what a core did, in order. User mode also ends before each CoreEnter.
class CoreSink {
 public:
  virtual ~CoreSink() = default;
  virtual void OnBlock(const CoreBlock& block) = 0;
  virtual void OnEnter(const CoreEnter& enter) = 0;
  virtual void OnGap(CoreGap gap) = 0;
  // Decoding begins at a PSB. Nothing that is reported from now on retired
  // before the time given (0: not known). Decoding may begin inside user mode;
  // OnEnter is then called when the first block has been decoded.
  virtual void OnSync(TscTicks) {}
};

// Decodes one core, step by step. An instruction is reported once a packet
// proves that it retired, and a gap is reported wherever that fails; decoding
// goes on at the next address in the trace, or PSB (PacketWalk). Memory: a few
// blocks and timing packets and, after the first gap, ResumeWindow::kBytesMax.
//
// Blocks wait in two places before they are reported:
//
//     FlowReader --> held_ ----> proven_ ----> sink
//                    retired?    retired;      a packet, or the next block,
//                                cut short?    says that it was not cut short
//
// Invariants: what is in held_ follows what is in proven_, and both follow all
// that the sink has got; lower bounds never decrease from block to block; after
// a gap nothing is reported that was decoded before it and not proven.
//
// Worked example. A runs through to B, which ends in a conditional branch, and
// C follows. C is then interrupted.
//
//     trace   TSC 1000      TNT (B taken)     TSC 1200     FUP, TIP.PGD (in C)
//     block A    no packet yet: held_, time [1000, ?]
//     block B    the TNT bit proves A and B: A is reported, B becomes proven_,
//                both with time [1000, 1200]
//     block C    held_, time [1000, ?]: the TNT packet led to it, and the last
//                edge before that packet is TSC 1000
//     the stop   proves C and marks it interrupted: B, then C are reported
//
// Blocks have sound time bounds: see docs/design/decoder.md. Not thread-safe.
class CoreDecoder {
 public:
  // `image` and the pieces' bytes must outlive the decoder.
  CoreDecoder(std::vector<AuxPiece> pieces, CodeImage& image,
              const TimingConfig& timing, const CpuIdentity& cpu);

  // One step on: `sink` gets what it proves, perhaps nothing yet. False at the
  // end, where it gets nothing any more. Code that `sink` maps or sets in
  // OnEnter or OnSync is known from the next step on.
  bool Step(CoreSink& sink);
  // Other code from now on. `image` must outlive the decoder, or the next call.
  void SetImage(CodeImage& image);

  // Timing packets that went back in time, so far.
  uint64_t backwards() const;

 private:
  bool OpenPiece();
  void BeginAt(uint64_t psb);
  void OnStep(const FlowStep& step);
  void OnBlock(const FlowStep& step);
  void ReportBranch(const FlowStep& step, TscTicks lo);
  void OnStop(const FlowStep& step);
  void OnOverflow(const FlowStep& step);
  void OnError(const FlowStep& step);
  void OnProven(const FlowStep& step);
  void OnEnd();
  void Enter(const FlowStep& step);
  void Prove(uint64_t pos);
  void ProveBefore(uint64_t pos);
  void ProveUntil(TscTicks time);
  void Flush() {
    if (has_proven_) {
      sink_->OnBlock(proven_);
      has_proven_ = false;
    }
  }
  void DropUnproven();
  void AddGap(GapCause cause, uint64_t pos, uint64_t bytes,
              std::optional<TscTicks> until, TraceeAddr ip, std::string detail,
              std::string resumes = {});
  TscTicks LowerAt(uint64_t pos) {
    return std::max(edges_->LowerBound(pos), floor_);
  }
  TscTicks UpperAt(uint64_t pos) {
    return edges_->UpperBound(pos).value_or(kTscUnknown);
  }
  TscInterval TimeAt(uint64_t pos);
  uint64_t AuxOffset(uint64_t pos) const;
  std::string DescribeResume(const std::optional<ResumePoint>& point) const;

  std::vector<AuxPiece> pieces_;
  CodeImage* image_;
  TimingConfig timing_;
  CpuIdentity cpu_;
  size_t next_piece_ = 0;
  const AuxPiece* piece_ = nullptr;
  std::unique_ptr<FlowReader> flow_;
  std::unique_ptr<TimingEdges> edges_;
  FlowStep step_;           // reused
  uint64_t lower_pos_ = 0;  // T(lower_pos_) led to the next instruction
  TscTicks floor_;          // no instruction to come retired before
  TraceeAddr last_ip_;
  bool enabled_ = false;
  bool finished_ = false;
  uint64_t backwards_ = 0;
  // Not yet reported: the last block that is proven, which may turn out to be
  // interrupted, and the unproven ones behind it.
  CoreBlock proven_;
  bool has_proven_ = false;
  std::vector<CoreBlock> held_;
  CoreSink* sink_ = nullptr;  // during Step()
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_CORE_DECODER_H_
