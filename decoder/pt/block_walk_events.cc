// Events: where in the code they belong, and what they change.
//
// An event comes with the address that it is about, or it is about the next
// instruction of some kind. The way there is part of the block before it; what
// is left of the code block begins the next one.

#include <algorithm>

#include "decoder/pt/block_walk.h"

namespace clew::decoder {
namespace {

bool IsMovCr3(const CodeBlock& code) {
  return code.special == SpecialInsn::kMovCr3;
}

bool IsPtwrite(const CodeBlock& code) {
  return code.special == SpecialInsn::kPtwrite;
}

bool EndsFar(const CodeBlock& code) {
  return code.last_class == ptic_far_call ||
         code.last_class == ptic_far_return || code.last_class == ptic_far_jump;
}

bool BindsToPaging(const CodeBlock& code) {
  return IsMovCr3(code) || code.special == SpecialInsn::kVmEntry ||
         EndsFar(code);
}

bool BindsToVmcs(const CodeBlock& code) {
  return code.special == SpecialInsn::kVmPtrld ||
         code.special == SpecialInsn::kVmEntry || EndsFar(code);
}

bool IsBranch(uint8_t insn_class) {
  return insn_class != ptic_error && insn_class != ptic_other &&
         insn_class != ptic_ptwrite;
}

}  // namespace

int BlockWalk::FetchEvent() {
  if (in_event_) {
    return 0;
  }
  const int status = pt_qry_event(query_.get(), &event_, sizeof event_);
  if (status >= 0) {
    in_event_ = true;
    status_ = status;
  }
  return status;
}

// Proceeding to an event. 1: it is here, 0: not yet. `last`: the code block
// that was taken last as a whole.

int BlockWalk::ProceedToIp(pt_block& block, uint64_t ip, CodeBlock& last) {
  while (ip_ != ip) {
    const CodeBlock& code = image_->BlockAt(ip_, mode_);
    const auto insns = image_->InsnsOf(code);
    const auto at = std::ranges::find(insns, ip);
    if (at != insns.end()) {
      const auto before = static_cast<uint16_t>(at - insns.begin());
      if (!TakeFirst(code, before, block)) {
        return 0;
      }
      ip_ = ip;
      return 1;
    }
    last = code;
    const int status = TakeAll(code, block);
    if (status <= 0) {
      return status;
    }
  }
  return 1;
}

int BlockWalk::ProceedToInsn(pt_block& block, Wanted wanted, CodeBlock& last) {
  while (true) {
    const CodeBlock& code = image_->BlockAt(ip_, mode_);
    last = code;
    const int status = TakeAll(code, block);
    if (status != 0 && wanted(last)) {
      ip_ = last.end_ip;
      return 1;
    }
    if (status <= 0) {
      return status;
    }
  }
}

// The address may be that behind the next branch.
int BlockWalk::ProceedToIpOrBranch(pt_block& block, bool ip_suppressed,
                                   uint64_t ip) {
  if (ip_suppressed) {
    return 1;
  }
  CodeBlock last;
  int status = ProceedToIp(block, ip, last);
  if (status == -pte_bad_query) {
    status = ProceedWithTrace(last);
  }
  return status < 0 ? status : ip_ == ip ? 1 : 0;
}

// It is about a jump out of what is traced, or the next branch that would have
// needed the trace.
int BlockWalk::ProceedToDisabled(pt_block& block) {
  CodeBlock last;
  const int status = event_.ip_suppressed != 0
                         ? ProceedToInsn(block, &IsMovCr3, last)
                         : ProceedToIp(block, event_.variant.disabled.ip, last);
  if (status == -pte_bad_query) {
    SetResumeIp(last);
    return 1;
  }
  return status;
}

// Behind a call, tracing resumes where it returns to.
void BlockWalk::SetResumeIp(const CodeBlock& last) {
  const bool is_call =
      last.last_class == ptic_call || last.last_class == ptic_far_call;
  ip_ = is_call ? last.next : 0;
}

int BlockWalk::ProceedToAsyncDisabled(pt_block& block) {
  CodeBlock last;
  const uint64_t at = event_.variant.async_disabled.at;
  const int status = ProceedToIp(block, at, last);
  if (status <= 0 || !has_skd022_ || !IsVmEntry(at)) {
    return status;
  }
  // Erratum SKD022: the FUP that made it asynchronous may be wrong.
  event_.type = ptev_disabled;
  event_.variant.disabled.ip = event_.variant.async_disabled.ip;
  return ProceedToDisabled(block);
}

bool BlockWalk::IsVmEntry(uint64_t ip) {
  const CodeBlock& code = image_->BlockAt(ip, mode_);
  return code.insn_count == 1 && code.special == SpecialInsn::kVmEntry;
}

int BlockWalk::ProceedToPtwrite(pt_block& block, CodeBlock& last) {
  if (event_.ip_suppressed != 0) {
    const int status = ProceedToInsn(block, &IsPtwrite, last);
    if (status > 0) {
      event_.variant.ptwrite.ip = ip_;
      event_.ip_suppressed = 0;
    }
    return status;
  }
  const int status = ProceedToIp(block, event_.variant.ptwrite.ip, last);
  if (status <= 0) {
    return status;
  }
  const CodeBlock& code = image_->BlockAt(ip_, mode_);
  last = code;
  if (code.insn_count == 0) {
    return image_->error();
  }
  const bool taken =
      code.insn_count > 1 ? TakeFirst(code, 1, block) : Take(code, block);
  if (!taken) {
    return 0;
  }
  if (code.insn_count > 1 || code.end == BlockEnd::kFails) {
    last.end = BlockEnd::kGoesOn;
    last.next = code.insn_count > 1 ? image_->InsnsOf(code)[1] : code.next;
    last.special = SpecialInsn::kNone;
    last.last_class = ptic_other;
  }
  return 1;
}

int BlockWalk::Postpone(const CodeBlock& last, bool Postponed::* bound) {
  if (postponed_.is) {
    return -pte_internal;
  }
  postponed_.is = true;
  postponed_.block = last;
  postponed_.*bound = true;
  return Status(pts_event_pending);
}

int BlockWalk::Bind(pt_block& block, Wanted wanted, bool Postponed::* bound) {
  if (!enabled_) {
    return Status(pts_event_pending);
  }
  CodeBlock last;
  const int status = wanted == &IsPtwrite ? ProceedToPtwrite(block, last)
                                          : ProceedToInsn(block, wanted, last);
  return status <= 0 ? status : Postpone(last, bound);
}

int BlockWalk::ProceedEvent(pt_block& block) {
  CodeBlock last;
  const auto& of = event_.variant;
  const bool no_ip = event_.ip_suppressed != 0;
  int status = 1;
  switch (event_.type) {
    case ptev_disabled:
      status = ProceedToDisabled(block);
      break;
    case ptev_async_disabled:
      status = ProceedToAsyncDisabled(block);
      break;
    case ptev_async_branch:
      status = ProceedToIp(block, of.async_branch.from, last);
      break;
    case ptev_paging:
      return Bind(block, &BindsToPaging, &Postponed::bound_paging);
    case ptev_vmcs:
      return Bind(block, &BindsToVmcs, &Postponed::bound_vmcs);
    case ptev_ptwrite:
      return Bind(block, &IsPtwrite, &Postponed::bound_ptwrite);
    case ptev_async_paging:
      status = ProceedToIpOrBranch(block, no_ip, of.async_paging.ip);
      break;
    case ptev_async_vmcs:
      status = ProceedToIpOrBranch(block, no_ip, of.async_vmcs.ip);
      break;
    case ptev_exec_mode:
      status = ProceedToIpOrBranch(block, no_ip, of.exec_mode.ip);
      break;
    case ptev_tsx:
      status = no_ip ? 1 : ProceedToIp(block, of.tsx.ip, last);
      break;
    case ptev_exstop:
      status = !enabled_ || no_ip ? 1 : ProceedToIp(block, of.exstop.ip, last);
      break;
    case ptev_mwait:
      status = !enabled_ || no_ip ? 1 : ProceedToIp(block, of.mwait.ip, last);
      break;
    default:
      break;  // it is about no instruction
  }
  return status <= 0 ? status : Status(pts_event_pending);
}

// Telling, at the end of a block or behind an event, of the next event if it is
// about what is at ip_.

int BlockWalk::LeavePostponed() {
  if (!postponed_.is) {
    return 0;
  }
  if (enabled_) {
    const CodeBlock& code = postponed_.block;
    if (code.end == BlockEnd::kGoesOn) {
      ip_ = code.next;
    } else if (const int status = ProceedWithTrace(code); status < 0) {
      return status;
    }
  }
  postponed_ = {};
  return 0;
}

int BlockWalk::TrailingEvent(const pt_block* block) {
  if (!HasEvent()) {
    const int status = LeavePostponed();
    return status < 0 ? status : Status(0);
  }
  int status = FetchEvent();
  if (status < 0) {
    return status;
  }
  switch (event_.type) {
    case ptev_disabled:
      return TrailingDisabled();
    case ptev_paging:
      return TrailingBound(&BindsToPaging, &Postponed::bound_paging);
    case ptev_vmcs:
      return TrailingBound(&BindsToVmcs, &Postponed::bound_vmcs);
    case ptev_ptwrite:
      return TrailingBound(&IsPtwrite, &Postponed::bound_ptwrite);
    default:
      status = LeavePostponed();
      if (status < 0) {
        return status;
      }
      return Status(ReachedByTrailing(block) ? pts_event_pending : 0);
  }
}

// It may be about the postponed instruction or the branch right behind it.
int BlockWalk::TrailingDisabled() {
  if (postponed_.is) {
    const CodeBlock& code = postponed_.block;
    if (event_.ip_suppressed != 0 && IsMovCr3(code)) {
      return Status(pts_event_pending);
    }
    if (code.end != BlockEnd::kGoesOn) {
      SetResumeIp(code);
      return Status(pts_event_pending);
    }
    ip_ = code.next;
    postponed_ = {};
    if (event_.ip_suppressed == 0 && ip_ == event_.variant.disabled.ip) {
      return Status(pts_event_pending);
    }
  }
  return Status(0);
}

// At most one event of a kind is about one instruction.
int BlockWalk::TrailingBound(Wanted wanted, bool Postponed::* bound) {
  if (!enabled_) {
    return Status(pts_event_pending);
  }
  const bool elsewhere =
      event_.type == ptev_ptwrite && event_.ip_suppressed == 0;
  if (postponed_.is && !(postponed_.*bound) && !elsewhere &&
      wanted(postponed_.block)) {
    postponed_.*bound = true;
    return Status(pts_event_pending);
  }
  const int status = LeavePostponed();
  return status < 0 ? status : Status(0);
}

bool BlockWalk::ReachedByTrailing(const pt_block* block) {
  if (event_.type == ptev_tsx && event_.ip_suppressed == 0 &&
      block != nullptr && has_bdm64_) {
    CorrectAbort(*block);
  }
  if (!EventIsHere()) {
    return false;
  }
  if (event_.type == ptev_async_disabled && has_skd022_ && IsVmEntry(ip_)) {
    event_.type = ptev_disabled;
    event_.variant.disabled.ip = event_.variant.async_disabled.ip;
    return false;
  }
  return true;
}

bool BlockWalk::EventIsHere() const {
  const auto& of = event_.variant;
  const bool no_ip = event_.ip_suppressed != 0;
  switch (event_.type) {
    case ptev_async_disabled:
      return ip_ == of.async_disabled.at;
    case ptev_async_branch:
      return ip_ == of.async_branch.from;
    case ptev_async_paging:
      return no_ip || ip_ == of.async_paging.ip;
    case ptev_async_vmcs:
      return no_ip || ip_ == of.async_vmcs.ip;
    case ptev_exec_mode:
      return no_ip || ip_ == of.exec_mode.ip;
    case ptev_tsx:
      return no_ip || ip_ == of.tsx.ip;
    case ptev_exstop:
      return no_ip || !enabled_ || ip_ == of.exstop.ip;
    case ptev_mwait:
      return no_ip || !enabled_ || ip_ == of.mwait.ip;
    default:
      return true;
  }
}

// Erratum BDM64: the branch right before an abort may have led elsewhere than
// its packet says. It did if the abort cannot be reached from there.
void BlockWalk::CorrectAbort(const pt_block& block) {
  if (event_.variant.tsx.aborted == 0 || block.ninsn == 0) {
    return;
  }
  const CodeBlock& last = image_->BlockAt(block.end_ip, block.mode);
  if (last.insn_count == 1 && IsBranch(last.last_class) &&
      !CanReach(ip_, event_.variant.tsx.ip)) {
    ip_ = event_.variant.tsx.ip;
  }
}

bool BlockWalk::CanReach(uint64_t from, uint64_t to) {
  constexpr size_t kInsnsMax = 256;
  for (size_t passed = 0; passed <= kInsnsMax;) {
    if (from == to) {
      return true;
    }
    const CodeBlock& code = image_->BlockAt(from, mode_);
    const auto insns = image_->InsnsOf(code);
    const auto at = std::ranges::find(insns, to);
    if (at != insns.end()) {
      return passed + static_cast<size_t>(at - insns.begin()) <= kInsnsMax;
    }
    if (code.end != BlockEnd::kGoesOn) {
      return false;
    }
    passed += code.insn_count;
    from = code.next;
  }
  return false;
}

int BlockWalk::Event(pt_event& event) {
  if (!in_event_) {
    return -pte_bad_query;
  }
  const int status = Process();
  if (status < 0) {
    return status;
  }
  in_event_ = false;
  event = event_;
  return TrailingEvent(nullptr);
}

// What the event changes. No status update but of the mode may be among what
// runs.
int BlockWalk::Process() {
  auto& of = event_.variant;
  if (!EventIsHere()) {
    return -pte_bad_query;
  }
  switch (event_.type) {
    case ptev_enabled:
      if (event_.status_update != 0 || enabled_) {
        return -pte_bad_context;
      }
      if (event_.ip_suppressed != 0) {
        return -pte_noip;
      }
      of.enabled.resumed = of.enabled.ip == ip_ ? 1 : 0;
      ip_ = of.enabled.ip;
      enabled_ = true;
      return 0;
    case ptev_disabled:
    case ptev_async_disabled:
    case ptev_async_branch:
      if (event_.status_update != 0 || !enabled_) {
        return -pte_bad_context;
      }
      if (event_.type == ptev_async_branch) {
        ip_ = of.async_branch.to;
      } else {
        enabled_ = false;
      }
      return 0;
    case ptev_overflow:
      if (event_.status_update != 0) {
        return -pte_bad_context;
      }
      enabled_ = event_.ip_suppressed == 0;
      ip_ = enabled_ ? of.overflow.ip : 0;
      return 0;
    case ptev_exec_mode:
      if (event_.status_update != 0 && enabled_ && mode_ != ptem_unknown &&
          mode_ != of.exec_mode.mode) {
        return -pte_bad_status_update;
      }
      mode_ = of.exec_mode.mode;
      return 0;
    case ptev_stop:
      return event_.status_update != 0 || enabled_ ? -pte_bad_context : 0;
    default:
      return 0;
  }
}

}  // namespace clew::decoder
