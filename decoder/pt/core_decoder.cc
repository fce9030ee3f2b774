#include "decoder/pt/core_decoder.h"

#include <algorithm>
#include <utility>

#include "decoder/pt/packet.h"

namespace clew::decoder {
namespace {

const char* DropReason(FlowErrorKind error) {
  return error == FlowErrorKind::kCodeMissing ? "no code mapped there"
                                              : "cannot be decoded";
}

// The TSC in the PSB+ at `psb`, if there is one.
std::optional<TscTicks> TscOfPsb(std::span<const std::byte> bytes,
                                 uint64_t psb) {
  constexpr int kPacketsMax = 64;  // of a PSB+ there are about ten
  PacketReader reader(bytes);
  Packet packet;
  if (!reader.SyncAt(psb)) {
    return std::nullopt;
  }
  for (int i = 0; i < kPacketsMax && reader.Next(packet); ++i) {
    if (packet.type == PacketType::kTsc) {
      return TscTicks(packet.value);
    }
    if (packet.type == PacketType::kPsbend) {
      break;
    }
  }
  return std::nullopt;
}

}  // namespace

CoreDecoder::CoreDecoder(std::vector<AuxPiece> pieces, CodeImage& image,
                         const TimingConfig& timing, const CpuIdentity& cpu)
    : pieces_(std::move(pieces)), image_(&image), timing_(timing), cpu_(cpu) {}

uint64_t CoreDecoder::backwards() const {
  return backwards_ + (edges_ ? edges_->backwards() : 0);
}

void CoreDecoder::SetImage(CodeImage& image) {
  image_ = &image;
  if (flow_ != nullptr) {
    flow_->SetImage(image);
  }
}

bool CoreDecoder::Step(CoreSink& sink) {
  if (finished_) {
    return false;
  }
  sink_ = &sink;
  if (flow_ == nullptr && !OpenPiece()) {
    finished_ = true;
    return false;
  }
  if (flow_ != nullptr) {
    flow_->Next(step_);
    OnStep(step_);
  }
  return true;
}

// Begins the next piece; false after the last. Leaves flow_ null if the piece
// holds nothing that can be decoded.
bool CoreDecoder::OpenPiece() {
  if (next_piece_ == pieces_.size()) {
    return false;
  }
  piece_ = &pieces_[next_piece_++];
  if (edges_) {
    floor_ = std::max(floor_, edges_->LowerBound(UINT64_MAX));
    backwards_ += edges_->backwards();
  }
  // What the last piece knew of time holds for this one, which comes after it;
  // the timing packets in the hole are lost.
  edges_ = std::make_unique<TimingEdges>(piece_->bytes, timing_);
  flow_ = std::make_unique<FlowReader>(piece_->bytes, *image_, cpu_,
                                       !timing_.branches_before_timing);
  enabled_ = false;
  lower_pos_ = 0;
  const auto psb = flow_->SyncAt(0);
  // Gaps end at the first edge behind them: what was lost retired until then.
  if (!piece_->hole.empty()) {
    AddGap(GapCause::kAuxLost, 0, piece_->hole_bytes, edges_->FirstFrom(0),
           TraceeAddr(), piece_->hole);
  }
  if (!psb || *psb > 0) {
    const uint64_t skipped = psb ? *psb : piece_->bytes.size();
    if (skipped > 0) {
      AddGap(GapCause::kBadPacket, 0, skipped, edges_->FirstFrom(skipped),
             TraceeAddr(), "no PSB before");
    }
  }
  if (psb) {
    BeginAt(*psb);
  } else {
    flow_.reset();
  }
  return true;
}

// What is decoded from a PSB on was executed after it: its FUP is what comes
// next (SDM vol. 3C, "Packet Stream Boundary (PSB) Packet").
void CoreDecoder::BeginAt(uint64_t psb) {
  if (const auto time = TscOfPsb(piece_->bytes, psb)) {
    floor_ = std::max(floor_, *time);
  }
  sink_->OnSync(LowerAt(lower_pos_));
}

void CoreDecoder::OnStep(const FlowStep& step) {
  switch (step.kind) {
    case FlowKind::kBlock:
      return OnBlock(step);
    case FlowKind::kEnabled:
      return Enter(step);
    case FlowKind::kDisabled:
    case FlowKind::kInterrupted:
    case FlowKind::kAsyncBranch:
      return OnStop(step);
    case FlowKind::kOverflow:
      return OnOverflow(step);
    case FlowKind::kProven:
      return OnProven(step);
    case FlowKind::kError:
      return OnError(step);
    case FlowKind::kEnd:
      return OnEnd();
  }
}

// A block that ends in a branch read from the trace is proven by it, and so are
// those before it. A system call is a block of its own. T(pos_before) or a
// later packet held that branch, and T( pos_after) or an earlier one: hence the
// bounds of what comes next, and of what came until now.
void CoreDecoder::OnBlock(const FlowStep& step) {
  const TscTicks lo = LowerAt(lower_pos_);
  if (!enabled_) {
    // Decoding began at a PSB in the midst of user mode, for which libipt has
    // no event.
    sink_->OnEnter({.ip = step.ip,
                    .time = {lo, kTscUnknown},
                    .switched_on = SwitchedOn::kNo});
    enabled_ = true;
  }
  if (step.ends_in_branch) {
    return ReportBranch(step, lo);
  }
  CoreBlock block = {.ip = step.ip,
                     .end_ip = step.end_ip,
                     .insn_count = step.insn_count,
                     .time = {lo, kTscUnknown},
                     .interrupted = false,
                     .is_syscall = false,
                     .code_bits = step.code_bits};
  if (step.ends_in_syscall) {
    if (--block.insn_count > 0) {
      held_.push_back(block);
    }
    block.ip = step.end_ip;
    block.insn_count = 1;
    block.is_syscall = true;
  }
  held_.push_back(block);
}

void CoreDecoder::ReportBranch(const FlowStep& step, TscTicks lo) {
  // In this order: Prove moves the older blocks through proven_, which is then
  // free for this one.
  if (!held_.empty()) {
    Prove(step.pos_after);
  }
  Flush();
  // Field by field: to copy what was just written in parts stalls the
  // processor.
  proven_.ip = step.ip;
  proven_.end_ip = step.end_ip;
  proven_.insn_count = step.insn_count;
  proven_.time.lo = lo;
  proven_.time.hi = std::max(proven_.time.lo, UpperAt(step.pos_after));
  proven_.interrupted = false;
  proven_.is_syscall = false;
  proven_.code_bits = step.code_bits;
  has_proven_ = true;
  lower_pos_ = std::max(lower_pos_, step.pos_before);
  last_ip_ = step.end_ip;
}

// libipt reads at most one event ahead, and between two TIP.PGE a TIP.PGD is an
// event: the last TIP.PGE read is this step's.
void CoreDecoder::Enter(const FlowStep& step) {
  Prove(step.pos_after);
  Flush();
  const uint64_t enable = edges_->LastEnable(step.pos_after);
  lower_pos_ = std::max(
      {lower_pos_, std::min(step.pos_before, step.pos_after), enable + 1});
  sink_->OnEnter({.ip = step.ip,
                  .time = TimeAt(lower_pos_),
                  .switched_on = edges_->SwitchedOnAt(enable)});
  enabled_ = true;
}

// The event's packets prove all before it. As above, the last TIP.PGD is its.
void CoreDecoder::OnStop(const FlowStep& step) {
  const bool stays = step.kind == FlowKind::kAsyncBranch;
  const uint64_t pos =
      stays ? step.pos_after
            : std::max(lower_pos_, edges_->LastDisable(step.pos_after) + 1);
  Prove(pos);
  if (step.kind != FlowKind::kDisabled) {
    proven_.interrupted = true;
  }
  Flush();
  if (!stays) {
    lower_pos_ = pos;
    enabled_ = false;
  }
}

// libipt had read ahead along code for which no packet came: those blocks may
// not have retired, so they are dropped and not proven by the OVF.
void CoreDecoder::OnOverflow(const FlowStep& step) {
  const uint64_t pos = step.pos_before;
  DropUnproven();
  AddGap(GapCause::kOverflow, pos, 0, edges_->FirstFrom(step.pos_after),
         last_ip_, "OVF: the core dropped packets");
  lower_pos_ = std::max(lower_pos_, pos);
  enabled_ = false;
  if (step.ip_known) {
    Enter(step);
  }
}

// Where decoding goes on in the same stretch of user mode, that is still its
// slice's. Otherwise the next step, or the first block, enters user mode.
void CoreDecoder::OnError(const FlowStep& step) {
  if (step.proven) {
    ProveBefore(step.pos_after);
  }
  DropUnproven();
  const uint64_t pos = step.pos_before;
  const std::optional<ResumePoint> point = flow_->Resume();
  const uint64_t resumed = point ? point->offset : piece_->bytes.size();
  const auto cause = step.error == FlowErrorKind::kCodeMissing
                         ? GapCause::kCodeMissing
                         : GapCause::kBadPacket;
  AddGap(cause, pos, resumed - std::min(pos, resumed),
         edges_->FirstFrom(resumed), step.ip,
         fmt::format("{}: {}", DropReason(step.error), step.text),
         DescribeResume(point));
  if (!point) {
    enabled_ = false;
    flow_.reset();
    return;
  }
  if (point->kind == ResumePoint::Kind::kInside) {
    lower_pos_ = std::max(lower_pos_, point->end);
    return;
  }
  enabled_ = false;
  lower_pos_ = std::max(lower_pos_, resumed);
  if (point->kind == ResumePoint::Kind::kPsb) {
    BeginAt(resumed);
  }
}

void CoreDecoder::OnProven(const FlowStep& step) {
  ProveBefore(step.pos_after);
  lower_pos_ = std::max(lower_pos_, step.pos_after);
}

std::string CoreDecoder::DescribeResume(
    const std::optional<ResumePoint>& point) const {
  if (!point) {
    return "no PSB follows";
  }
  const uint64_t at = AuxOffset(point->offset);
  switch (point->kind) {
    case ResumePoint::Kind::kPsb:
      return fmt::format("resuming at the PSB at {:#x}", at);
    case ResumePoint::Kind::kEnabled:
      return fmt::format("resuming at the TIP.PGE at {:#x}", at);
    case ResumePoint::Kind::kOverflow:
      return fmt::format("resuming at the OVF at {:#x}", at);
    case ResumePoint::Kind::kInside:
      break;
  }
  return fmt::format("resuming at the TIP at {:#x}", at);
}

// What libipt would go on with is not proven by any packet.
void CoreDecoder::OnEnd() {
  DropUnproven();
  if (enabled_) {
    AddGap(GapCause::kAuxLost, piece_->bytes.size(), 0, std::nullopt, last_ip_,
           "the trace ends before the thread left user mode");
  }
  enabled_ = false;
  flow_.reset();
}

// All held blocks retired before the packet T(pos) was made.
void CoreDecoder::Prove(uint64_t pos) {
  if (!held_.empty()) {
    ProveUntil(UpperAt(pos));
  }
}

// They retired before the packet at `pos` was made, which T(pos) may have come
// long before.
void CoreDecoder::ProveBefore(uint64_t pos) {
  if (!held_.empty()) {
    ProveUntil(edges_->FirstFrom(pos).value_or(kTscUnknown));
  }
}

// Leaves the last of them in proven_, since the event at hand may have cut it
// short.
void CoreDecoder::ProveUntil(TscTicks time) {
  for (CoreBlock& held : held_) {
    // The floor may be of a TSC that the packets behind it contradict.
    held.time.hi = std::max(held.time.lo, time);
    last_ip_ = held.end_ip;
    Flush();
    proven_ = held;
    has_proven_ = true;
  }
  held_.clear();
}

void CoreDecoder::DropUnproven() {
  held_.clear();
  Flush();
}

void CoreDecoder::AddGap(GapCause cause, uint64_t pos, uint64_t bytes,
                         std::optional<TscTicks> until, TraceeAddr ip,
                         std::string detail, std::string resumes) {
  // All that follows the gap retired no earlier than what came before it.
  const TscTicks lo = LowerAt(lower_pos_);
  floor_ = lo;
  sink_->OnGap({.cause = cause,
                .time = {lo, std::max(lo, until.value_or(kTscUnknown))},
                .aux_offset = AuxOffset(pos),
                .bytes = bytes,
                .ip = ip,
                .detail = std::move(detail),
                .resumes = std::move(resumes)});
}

TscInterval CoreDecoder::TimeAt(uint64_t pos) {
  const TscTicks lo = LowerAt(pos);
  return {lo, std::max(lo, UpperAt(pos))};
}

uint64_t CoreDecoder::AuxOffset(uint64_t pos) const {
  return piece_->aux_offset + pos;
}

}  // namespace clew::decoder
