// The way from one question to the trace to the next. Events are in
// block_walk_events.cc.

#include "decoder/pt/block_walk.h"

namespace clew::decoder {
BlockWalk::BlockWalk(std::span<const std::byte> bytes, CodeImage::Impl& image,
                     const CpuIdentity& cpu)
    : image_(&image) {
  pt_config config = ConfigOver(bytes);
  if (cpu.is_intel) {
    config.cpu = {pcv_intel, cpu.family, cpu.model, cpu.stepping};
    // An unknown model has no errata that we could work around.
    (void)pt_cpu_errata(&config.errata, &config.cpu);
  }
  has_bdm64_ = config.errata.bdm64 != 0;
  has_skd022_ = config.errata.skd022 != 0;
  // No mtc_freq and no ratio: libipt's clock is interpolated, ours is not
  // (timing_edges.h), so let it drop what it would need them for.
  query_.reset(pt_qry_alloc_decoder(&config));
  CLEW_CHECK(query_ != nullptr, "libipt: out of memory");
}

int BlockWalk::SyncSet(uint64_t offset) {
  enabled_ = false;
  in_event_ = false;
  mode_ = ptem_unknown;
  ip_ = 0;
  postponed_ = {};
  returns_ = {};
  status_ = 0;
  const int status = pt_qry_sync_set(query_.get(), &ip_, offset);
  if (status < 0) {
    return status;
  }
  status_ = status;
  enabled_ = (status & pts_ip_suppressed) == 0;
  return TrailingEvent(nullptr);
}

int BlockWalk::Status(int flags) const {
  flags |= enabled_ ? 0 : pts_ip_suppressed;
  if (!in_event_) {
    flags |= status_ & pts_eos;
  }
  return flags;
}

int BlockWalk::NextEvent(pt_block& block) {
  if (HasEvent()) {
    const int status = FetchEvent();
    return status < 0 ? status : ProceedEvent(block);
  }
  return (status_ & pts_eos) != 0 ? -pte_eos : -pte_no_enable;
}

// Nothing is postponed, as no event is told of.
int BlockWalk::ProceedNoEvent(pt_block& block) {
  while (true) {
    const CodeBlock& code = image_->BlockAt(ip_, mode_, behind_, taken_);
    behind_ = code.number;
    if (!Take(code, block)) {
      return 0;
    }
    switch (code.end) {
      case BlockEnd::kGoesOn:
        ip_ = code.next;
        continue;
      case BlockEnd::kFails:
        // libipt ends a block where a section does.
        ip_ = code.next;
        return image_->error() == -pte_nomap && block.ninsn > 0
                   ? 0
                   : image_->error();
      case BlockEnd::kConditional:
        return AskConditional(code);
      default:
        ip_ = code.end_ip;
        return ProceedWithTrace(code);
    }
  }
}

// The address behind `code`, which ends where the trace has to tell it.
int BlockWalk::ProceedWithTrace(const CodeBlock& code) {
  switch (code.end) {
    case BlockEnd::kConditional:
      return AskConditional(code);
    case BlockEnd::kReturn:
      return AskReturn();
    default:
      return AskIndirect();
  }
}

int BlockWalk::AskConditional(const CodeBlock& code) {
  int taken = 0;
  const int status = pt_qry_cond_branch(query_.get(), &taken);
  if (status < 0) {
    return status;
  }
  status_ = status;
  taken_ = taken != 0;
  ip_ = taken_ ? code.target : code.next;
  return 0;
}

// A branch that is taken is a compressed return.
int BlockWalk::AskReturn() {
  int taken = 0;
  const int status = pt_qry_cond_branch(query_.get(), &taken);
  if (status < 0) {
    return status == -pte_bad_query ? AskIndirect() : status;
  }
  status_ = status;
  if (taken == 0) {
    return -pte_bad_retcomp;
  }
  return returns_.Pop(ip_) ? 0 : -pte_retstack_empty;
}

int BlockWalk::AskIndirect() {
  const int status = pt_qry_indirect_branch(query_.get(), &ip_);
  if (status < 0) {
    return status;
  }
  status_ = status;
  led_by_tip_ = (status & pts_ip_suppressed) == 0;
  return led_by_tip_ ? 0 : -pte_noip;
}

// The first `insns`, which are not all.
bool BlockWalk::TakeFirst(const CodeBlock& code, uint16_t insns,
                          pt_block& block) {
  const uint32_t sum = uint32_t{block.ninsn} + insns;
  if (sum > UINT16_MAX) {
    return false;
  }
  LogCalls(code, insns);
  block.ninsn = static_cast<uint16_t>(sum);
  block.iclass = ptic_error;
  block.end_ip = image_->InsnsOf(code)[insns - 1u];
  return true;
}

void BlockWalk::LogCalls(const CodeBlock& code, uint16_t insns) {
  for (const CodeCall& call : image_->CallsOf(code)) {
    if (call.insn < insns) {
      returns_.Push(call.returns_to);
    }
  }
}

// 1: gone on to ip_, 0: no room. -pte_bad_query: it ends where the trace has to
// tell the way. Of another error, ip_ is where it is.
int BlockWalk::TakeAll(const CodeBlock& code, pt_block& block) {
  if (!Take(code, block)) {
    return 0;
  }
  if (code.end == BlockEnd::kGoesOn) {
    ip_ = code.next;
    return 1;
  }
  if (code.end == BlockEnd::kFails) {
    ip_ = code.next;
    return image_->error();
  }
  ip_ = code.end_ip;
  return -pte_bad_query;
}

}  // namespace clew::decoder
