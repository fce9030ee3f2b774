// Control flow. BlockWalk can begin at a PSB alone; to go on at another place
// it is shown a made-up trace (resume_window.h).

#include <algorithm>
#include <utility>

#include "decoder/pt/block_walk.h"
#include "decoder/pt/flow.h"
#include "decoder/pt/libipt.h"
#include "decoder/pt/packet.h"
#include "decoder/pt/resume_window.h"

namespace clew::decoder {
namespace {

uint8_t CodeBits(pt_exec_mode mode) {
  return mode == ptem_32bit ? 32 : mode == ptem_16bit ? 16 : 64;
}

// Can leave user mode.
bool IsFar(pt_insn_class iclass) {
  return iclass == ptic_far_call || iclass == ptic_far_return ||
         iclass == ptic_far_jump;
}

ResumePoint PsbPoint(uint64_t psb) {
  ResumePoint point;
  point.offset = psb;
  return point;
}

}  // namespace

class FlowReader::Impl {
 public:
  Impl(std::span<const std::byte> bytes, CodeImage::Impl& image,
       const CpuIdentity& cpu, bool tips_deferred)
      : bytes_(bytes),
        image_(&image),
        cpu_(cpu),
        walk_(bytes, tips_deferred),
        main_(bytes.empty() ? nullptr
                            : std::make_unique<BlockWalk>(bytes, image, cpu)),
        decoder_(main_.get()) {}

  std::optional<uint64_t> SyncAt(uint64_t offset) {
    // Never the same PSB twice, so that decoding comes to an end.
    for (auto psb = FindPsb(bytes_, std::max(offset, next_sync_)); psb;
         psb = FindPsb(bytes_, next_sync_)) {
      if (SyncMain(*psb)) {
        return psb;
      }
    }
    return std::nullopt;
  }

  std::optional<ResumePoint> Resume() {
    if (resumable_) {
      for (auto point = walk_.Next(pos_, in_user_mode_);
           point && point->kind != ResumePoint::Kind::kPsb;
           point = walk_.Next(point->end, in_user_mode_)) {
        if (OpenWindow(*point) && HasCode(*point)) {
          resumed_ = point;
          return point;
        }
      }
    }
    const auto psb = SyncAt(pos_);
    return psb ? std::optional(PsbPoint(*psb)) : std::nullopt;
  }

  void SetImage(CodeImage::Impl& image) {
    image_ = &image;
    for (BlockWalk* decoder : {main_.get(), window_decoder_.get()}) {
      if (decoder != nullptr) {
        decoder->SetImage(image);
      }
    }
  }

  void Next(FlowStep& step) {
    step = FlowStep{};
    if (resumed_ && TellResumed(*resumed_, step)) {
      return;
    }
    do {
      if (event_read_ || (status_ >= 0 && (status_ & pts_event_pending))) {
        NextEvent(step);
      } else {
        NextBlock(step);
      }
    } while (!done_);
  }

  uint64_t pos() const { return pos_; }

 private:
  bool in_window() const { return decoder_ != main_.get(); }
  // The PSB that a window ends at; none outside of one.
  std::optional<uint64_t> window_seam() const {
    return in_window() ? window_->seam() : std::nullopt;
  }

  uint64_t Position() const {
    const uint64_t offset = decoder_->Offset();
    return std::max(pos_, in_window() ? window_->ToTrace(offset) : offset);
  }

  bool SyncMain(uint64_t psb) {
    next_sync_ = psb + 1;
    decoder_ = main_.get();
    return Sync(psb);
  }

  bool Sync(uint64_t psb) {
    event_read_ = false;
    status_ = decoder_->SyncSet(psb);
    if (status_ < 0) {
      return false;
    }
    pos_ = Position();
    stalled_ = 0;
    return true;
  }

  // False: too many bytes until the next PSB.
  bool OpenWindow(const ResumePoint& point) {
    if (window_ == nullptr) {
      window_ = std::make_unique<ResumeWindow>(bytes_);
      window_decoder_ =
          std::make_unique<BlockWalk>(window_->buffer(), *image_, cpu_);
    }
    const auto seam = FindPsb(bytes_, point.end);
    const auto seam_ip = seam ? walk_.IpOfPsb(*seam) : std::nullopt;
    return window_->Begin(point, seam, seam_ip);
  }

  // A stretch of user mode may be another process's, with other code.
  bool HasCode(const ResumePoint& point) {
    if (point.kind != ResumePoint::Kind::kInside) {
      return true;
    }
    pt_block block = {};
    int status = window_decoder_->SyncSet(window_->start());
    if (status >= 0 && (status & pts_event_pending) == 0) {
      status = window_decoder_->Next(block);
    }
    return status != -pte_nomap || block.ninsn > 0;
  }

  // What a window begins with, unless it goes on in user mode. Then the caller
  // may set other code before the window is looked at.
  bool TellResumed(ResumePoint point, FlowStep& step) {
    if (point.kind != ResumePoint::Kind::kInside && !told_) {
      pos_ = std::max(pos_, point.end);
      step.ip = point.ip;
      step.ip_known = true;
      step.pos_before = point.offset;
      Finish(step, point.kind == ResumePoint::Kind::kEnabled
                       ? FlowKind::kEnabled
                       : FlowKind::kOverflow);
      told_ = true;
      return true;
    }
    told_ = false;
    resumed_.reset();
    decoder_ = window_decoder_.get();
    Sync(window_->start());  // NextBlock reports a failure
    return false;
  }

  void Finish(FlowStep& step, FlowKind kind) {
    step.kind = kind;
    step.pos_after = pos_;
    done_ = true;
  }

  void FinishError(FlowStep& step, TraceeAddr ip) {
    step.ip = ip;
    step.ip_known = true;
    step.text = TextOf(status_);
    const bool no_code = status_ == -pte_nomap;
    step.error =
        no_code ? FlowErrorKind::kCodeMissing : FlowErrorKind::kBadPacket;
    const bool at_end = status_ == -pte_eos && !window_seam();
    resumable_ = no_code || status_ == -pte_retstack_empty;
    in_user_mode_ = true;
    step.proven = no_code && (decoder_->GoesOn() || walk_.TipLedTo(ip, pos_));
    Finish(step, at_end ? FlowKind::kEnd : FlowKind::kError);
  }

  void NextEvent(FlowStep& step) {
    done_ = false;
    step.pos_before = pos_;
    if (!event_read_ && !ReadEvent()) {
      return FinishError(step, TraceeAddr());
    }
    event_read_ = false;
    const pt_event& event = event_;
    const uint64_t event_end = pos_;
    pos_ = Position();
    stalled_ = pos_ == event_end ? stalled_ : 0;
    step.ip_known = !event.ip_suppressed;
    switch (event.type) {
      case ptev_enabled:
        step.ip = TraceeAddr(event.variant.enabled.ip);
        return Finish(step, FlowKind::kEnabled);
      case ptev_disabled:
        step.ip = TraceeAddr(event.variant.disabled.ip);
        return Finish(step, FlowKind::kDisabled);
      case ptev_async_disabled:
        if (const auto psb = window_seam(); psb && IsStop()) {
          return CrossSeam(*psb, step);
        }
        step.ip = TraceeAddr(event.variant.async_disabled.at);
        return Finish(step, FlowKind::kInterrupted);
      case ptev_async_branch:
        step.ip = TraceeAddr(event.variant.async_branch.from);
        return Finish(step, FlowKind::kAsyncBranch);
      case ptev_overflow:
        step.ip = TraceeAddr(event.variant.overflow.ip);
        return Finish(step, FlowKind::kOverflow);
      default:
        return;  // tells nothing about where execution goes
    }
  }

  // The event just read is the made-up end of the window.
  // REQUIRES: in_window().
  bool IsStop() const {
    return window_->has_stop() && (status_ & pts_event_pending) == 0 &&
           decoder_->Offset() == window_->buffer().size();
  }

  // The seam's PSB+ proves what ran before.
  void CrossSeam(uint64_t psb, FlowStep& step) {
    if (!SyncMain(psb)) {
      return FinishError(step, TraceeAddr());
    }
    Finish(step, FlowKind::kProven);
  }

  // No packet is left that could prove what libipt would go on with.
  void AtEnd(FlowStep& step) {
    const auto psb = window_seam();
    if (!psb) {
      return Finish(step, FlowKind::kEnd);
    }
    if ((status_ & pts_ip_suppressed) == 0) {
      status_ = -pte_bad_packet;  // in user mode, of which the PSB+ is silent
      return FinishError(step, TraceeAddr());
    }
    CrossSeam(*psb, step);
  }

  void NextBlock(FlowStep& step) {
    done_ = false;
    step.pos_before = pos_;
    if (status_ < 0) {
      return FinishError(step, failed_at_);
    }
    if ((status_ & pts_eos) != 0) {
      return AtEnd(step);
    }
    pt_block block;
    status_ = decoder_->Next(block);
    if (status_ == -pte_retstack_empty && block.ninsn > 0) {
      return FinishLostReturn(step, block);
    }
    if (status_ == -pte_nomap && block.ninsn > 0) {
      return FinishBeforeMissing(step, block);
    }
    if (status_ < 0) {
      return FinishError(step, TraceeAddr(block.ip));
    }
    pos_ = Position();
    if (block.ninsn == 0) {
      if (Stalls(step.pos_before)) {
        status_ = -pte_bad_query;
        FinishError(step, TraceeAddr(block.ip));
      }
      return;
    }
    SetBlock(step, block);
    step.ends_in_branch = block.iclass == ptic_cond_jump ||
                          block.iclass == ptic_return ||
                          (decoder_->led_by_tip() && !IsFar(block.iclass));
    step.ends_in_syscall = block.iclass == ptic_far_call;
    if ((status_ & pts_event_pending) != 0 && !IsFar(block.iclass)) {
      if (!ReadEvent()) {
        return FinishError(step, TraceeAddr(block.ip));
      }
      if (event_.type == ptev_disabled && event_.ip_suppressed != 0) {
        return FinishUnlikeCode(step);
      }
      event_read_ = true;
    }
    if (!step.ends_in_branch && Stalls(step.pos_before)) {
      status_ = -pte_bad_query;  // code that never asks for a packet
      return FinishError(step, TraceeAddr(block.ip));
    }
    Finish(step, FlowKind::kBlock);
  }

  static void SetBlock(FlowStep& step, const pt_block& block) {
    step.ip = TraceeAddr(block.ip);
    step.end_ip = TraceeAddr(block.end_ip);
    step.ip_known = true;
    step.insn_count = block.ninsn;
    step.code_bits = CodeBits(block.mode);
  }

  // A branch of the trace says that the return ran, if not where it led. The
  // error is the next step.
  void FinishLostReturn(FlowStep& step, const pt_block& block) {
    pos_ = Position();
    SetBlock(step, block);
    step.ends_in_branch = true;
    failed_at_ = step.end_ip;
    Finish(step, FlowKind::kBlock);
  }

  // The next step asks for the code behind it anew: whoever takes the block may
  // have set other code by then.
  void FinishBeforeMissing(FlowStep& step, const pt_block& block) {
    status_ = 0;
    SetBlock(step, block);
    Finish(step, FlowKind::kBlock);
  }

  // The pending event; false if there is an error instead.
  bool ReadEvent() {
    status_ = decoder_->Event(event_);
    return status_ >= 0;
  }

  // TIP.PGD without an address says that user mode was left, which a near
  // branch cannot do: there is another instruction in memory.
  void FinishUnlikeCode(FlowStep& step) {
    pos_ = Position();
    step.text = "the code differs from what ran: user mode ends in between";
    step.error = FlowErrorKind::kBadPacket;
    resumable_ = true;
    in_user_mode_ = false;
    Finish(step, FlowKind::kError);
  }

  bool Stalls(uint64_t pos_before) {
    stalled_ = pos_ == pos_before ? stalled_ + 1 : 0;
    return stalled_ > kStepsWithoutProgressMax;
  }

  std::span<const std::byte> bytes_;
  CodeImage::Impl* image_;
  CpuIdentity cpu_;
  PacketWalk walk_;
  std::unique_ptr<BlockWalk> main_;
  std::unique_ptr<ResumeWindow> window_;  // once needed, as its decoder
  std::unique_ptr<BlockWalk> window_decoder_;
  BlockWalk* decoder_;  // main_ or window_decoder_
  int status_ = -pte_nosync;
  uint64_t pos_ = 0;        // never decreases
  uint64_t next_sync_ = 0;  // no PSB before this one any more
  uint32_t stalled_ = 0;
  bool done_ = false;
  pt_event event_ = {};
  bool event_read_ = false;  // event_ is to be told next
  // After an error: the packets behind it can be trusted.
  bool resumable_ = false;
  bool in_user_mode_ = true;
  std::optional<ResumePoint> resumed_;  // whose window is not begun yet
  bool told_ = false;
  TraceeAddr failed_at_;  // of an error to tell
};

FlowReader::FlowReader(std::span<const std::byte> bytes, CodeImage& image,
                       const CpuIdentity& cpu, bool tips_deferred)
    : impl_(std::make_unique<Impl>(bytes, *image.impl_, cpu, tips_deferred)) {}
FlowReader::FlowReader(FlowReader&&) noexcept = default;
FlowReader& FlowReader::operator=(FlowReader&&) noexcept = default;
FlowReader::~FlowReader() = default;

std::optional<uint64_t> FlowReader::SyncAt(uint64_t offset) {
  return impl_->SyncAt(offset);
}
std::optional<ResumePoint> FlowReader::Resume() { return impl_->Resume(); }
void FlowReader::SetImage(CodeImage& image) { impl_->SetImage(*image.impl_); }
void FlowReader::Next(FlowStep& step) { impl_->Next(step); }
uint64_t FlowReader::pos() const { return impl_->pos(); }

}  // namespace clew::decoder
