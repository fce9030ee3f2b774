#ifndef CLEW_DECODER_PT_BLOCK_WALK_H_
#define CLEW_DECODER_PT_BLOCK_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "decoder/pt/flow.h"
#include "decoder/pt/libipt.h"

namespace clew::decoder {

// The addresses behind the calls that have not returned, as many as a CPU keeps
// for its compressed returns (SDM vol. 3C, "Indirect Transfer Compression for
// Returns (RET)"): of more, the first are forgotten.
class ReturnStack {
 public:
  void Push(uint64_t ip) {
    ips_[top_++ % kMax] = ip;
    count_ += count_ < kMax ? 1 : 0;
  }
  // False: there is none.
  bool Pop(uint64_t& ip) {
    if (count_ == 0) {
      return false;
    }
    --count_;
    ip = ips_[--top_ % kMax];
    return true;
  }

 private:
  static constexpr uint32_t kMax = 64;
  std::array<uint64_t, kMax> ips_ = {};
  uint32_t top_ = 0;
  uint32_t count_ = 0;
};

// What libipt's block decoder (pt_blk_*) does, over code that is decoded once
// (code_blocks.h): the packets and what they mean are its query decoder's, the
// way from one question to the next is ours. Statuses, blocks and events are
// libipt's, by the contracts of intel-pt.h, but for these: a block goes on
// from section to section, its last instruction's class is always known where
// it needed the trace, and no instruction's bytes are given.
//
// It is checked against pt_blk_* call by call (tests/decoder/
// block_walk_test.cc). Not thread-safe.
class BlockWalk {
 public:
  // `bytes` and `image` must outlive it.
  BlockWalk(std::span<const std::byte> bytes, CodeImage::Impl& image,
            const CpuIdentity& cpu);

  int SyncSet(uint64_t offset);
  int Next(pt_block& block) {
    block.ip = ip_;
    block.end_ip = 0;
    block.mode = mode_;
    block.iclass = ptic_error;
    block.ninsn = 0;
    led_by_tip_ = false;
    if (HasEvent() || !enabled_) [[unlikely]] {
      return NextEvent(block);
    }
    const int status = ProceedNoEvent(block);
    if (status < 0 || HasEvent()) [[unlikely]] {
      return status < 0 ? status : TrailingEvent(&block);
    }
    return status_ & pts_eos;
  }
  // The last instruction of the last block is a near branch whose target the
  // trace has told.
  bool led_by_tip() const { return led_by_tip_; }
  // What ran before the missing code retired, as the trace goes on with a
  // branch or an event that is not about any of it. REQUIRES: the last Next()
  // has failed with -pte_nomap; a further one goes on where code is missing.
  bool GoesOn() const { return in_event_ || (status_ & pts_eos) == 0; }
  int Event(pt_event& event);
  uint64_t Offset() const {
    uint64_t offset = 0;
    return pt_qry_get_offset(query_.get(), &offset) < 0 ? 0 : offset;
  }
  // The code from the next call on; must outlive it, or the next SetImage.
  void SetImage(CodeImage::Impl& image) { image_ = &image; }

 private:
  // The instruction at the end of a block, of which an event is told before it
  // is left, as others may be about it, too.
  struct Postponed {
    bool is = false;
    CodeBlock block;
    bool bound_paging = false;
    bool bound_vmcs = false;
    bool bound_ptwrite = false;
  };
  using Wanted = bool (*)(const CodeBlock&);

  int Status(int flags) const;
  bool HasEvent() const {
    return in_event_ || (status_ & pts_event_pending) != 0;
  }
  int FetchEvent();
  int NextEvent(pt_block& block);
  int ProceedNoEvent(pt_block& block);
  int ProceedWithTrace(const CodeBlock& code);
  int AskConditional(const CodeBlock& code);
  int AskReturn();
  int AskIndirect();
  // `code` is part of `block`; false if there is no room.
  bool Take(const CodeBlock& code, pt_block& block) {
    const uint32_t sum = uint32_t{block.ninsn} + code.insn_count;
    if (sum > UINT16_MAX || code.insn_count == 0) [[unlikely]] {
      return code.insn_count == 0;
    }
    if (code.call_count > 0) {
      LogCalls(code, code.insn_count);
    }
    block.ninsn = static_cast<uint16_t>(sum);
    block.iclass = static_cast<pt_insn_class>(code.last_class);
    block.end_ip = code.end_ip;
    return true;
  }
  bool TakeFirst(const CodeBlock& code, uint16_t insns, pt_block& block);
  void LogCalls(const CodeBlock& code, uint16_t insns);
  int TakeAll(const CodeBlock& code, pt_block& block);
  int ProceedToIp(pt_block& block, uint64_t ip, CodeBlock& last);
  int ProceedToInsn(pt_block& block, Wanted wanted, CodeBlock& last);
  int ProceedToIpOrBranch(pt_block& block, bool ip_suppressed, uint64_t ip);
  int ProceedToDisabled(pt_block& block);
  int ProceedToPtwrite(pt_block& block, CodeBlock& last);
  int ProceedToAsyncDisabled(pt_block& block);
  int ProceedEvent(pt_block& block);
  int Bind(pt_block& block, Wanted wanted, bool Postponed::* bound);
  int Postpone(const CodeBlock& last, bool Postponed::* bound);
  int LeavePostponed();
  int TrailingEvent(const pt_block* block);
  int TrailingDisabled();
  int TrailingBound(Wanted wanted, bool Postponed::* bound);
  bool ReachedByTrailing(const pt_block* block);
  bool EventIsHere() const;
  void SetResumeIp(const CodeBlock& last);
  bool IsVmEntry(uint64_t ip);
  bool CanReach(uint64_t from, uint64_t to);
  void CorrectAbort(const pt_block& block);
  int Process();

  std::unique_ptr<pt_query_decoder,
                  IptDeleter<pt_query_decoder, pt_qry_free_decoder>>
      query_;
  CodeImage::Impl* image_;
  bool has_bdm64_ = false;
  bool has_skd022_ = false;
  int status_ = 0;  // of query_
  bool enabled_ = false;
  bool in_event_ = false;  // event_ was read and not told yet
  pt_exec_mode mode_ = ptem_unknown;
  uint64_t ip_ = 0;
  // The code block before ip_ and the outcome of its branch: BlockAt()'s.
  uint32_t behind_ = 0;
  bool taken_ = false;
  bool led_by_tip_ = false;
  pt_event event_ = {};
  Postponed postponed_;
  ReturnStack returns_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_BLOCK_WALK_H_
