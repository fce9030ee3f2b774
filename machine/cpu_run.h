#ifndef CLEW_MACHINE_CPU_RUN_H_
#define CLEW_MACHINE_CPU_RUN_H_

// The run loop of Cpu<D> and the block cache, as templates: included by the
// one file that instantiates them for a domain.

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/x86/opcode.h"
#include "machine/block_cache.h"
#include "machine/cpu_access.h"
#include "machine/insn/families.h"

namespace clew::machine {

namespace run {

template <class D>
void Illegal(Cpu<D>& cpu, const Insn& insn) {
  cpu.Raise(FaultKind::kIllegal, insn.ip);
}

template <class D>
void Unsupported(Cpu<D>& cpu, const Insn&) {
  cpu.StopUnsupported();
}

// The byte at Insn::imm cannot be fetched.
template <class D>
void FetchFault(Cpu<D>& cpu, const Insn& insn) {
  cpu.RaiseFetch(static_cast<uint64_t>(insn.imm));
}

}  // namespace run

// Source: Intel SDM volume 3A, 11.10 "Store Buffer", and 8.2.5; XCHG with
// memory is locked with or without the prefix.
inline bool Drains(const Decoded& decoded) {
  const Insn& insn = decoded.insn;
  const std::string_view name = decoded.mnemonic;
  return insn.lock || name == "mfence" || name == "sfence" ||
         name == "syscall" || name == "cpuid" || name == "serialize" ||
         (name == "xchg" && (insn.op[0].is_mem() || insn.op[1].is_mem()));
}

template <class D>
void BlockCache<D>::Clear() {
  blocks_.clear();
  recent_.fill(Recent());
  op_count_ = 0;
}

template <class D>
const Block<D>& BlockCache<D>::FindSlow(const Memory& memory, uint64_t ip) {
  if (memory.code_version() != version_ || op_count_ > kOpsMax) {
    Clear();
    version_ = memory.code_version();
  }
  std::unique_ptr<Block<D>>& block = blocks_[ip];
  if (block == nullptr) {
    block = std::make_unique<Block<D>>(Build(memory, ip));
    op_count_ += block->ops.size();
  }
  recent_[ip % kRecent] = {ip, block.get()};
  return *block;
}

template <class D>
Op<D> BlockCache<D>::MakeOp(const Decoded& decoded, uint64_t ip) const {
  Op<D> op{&run::Unsupported<D>, decoded.insn};
  op.insn.ip = ip;
  if (decoded.status == DecodeStatus::kIllegal) {
    op.run = &run::Illegal<D>;
  } else if (decoded.status == DecodeStatus::kOk) {
    const Handler<D> handler = handlers_.Find(decoded);
    op.run = handler != nullptr ? handler : op.run;
    op.insn.drains = Drains(decoded);
  }
  return op;
}

template <class D>
Block<D> BlockCache<D>::Build(const Memory& memory, uint64_t ip) {
  Block<D> block;
  for (bool more = true; more;) {
    std::array<std::byte, x86::kInsnBytesMax> bytes;
    const size_t size = memory.Fetch(ip, bytes);
    const Decoded decoded = decoder_.Decode(ip, std::span(bytes).first(size));
    Op<D> op = MakeOp(decoded, ip);
    if (decoded.status == DecodeStatus::kTooShort) {
      op.run = &run::FetchFault<D>;
      op.insn.imm = static_cast<int64_t>(ip + size);
    }
    more = decoded.status == DecodeStatus::kOk && !decoded.ends_block &&
           op.run != &run::Unsupported<D> &&
           block.ops.size() + 1 < kBlockOpsMax;
    ip += decoded.insn.length;
    block.ops.push_back(op);
  }
  return block;
}

template <class D>
std::string BlockCache<D>::Describe(const Memory& memory, uint64_t ip) {
  std::array<std::byte, x86::kInsnBytesMax> bytes;
  const size_t size = memory.Fetch(ip, bytes);
  return decoder_.Describe(ip, std::span(bytes).first(size),
                           handlers_.features());
}

// Runs at most `budget` instructions of a block; returns how many retired.
template <class D>
uint64_t Cpu<D>::RunBlock(const Block<D>& block, uint64_t budget) {
  const size_t count = std::min<uint64_t>(block.ops.size(), budget);
  const Op<D>* const begin = block.ops.data();
  const Op<D>* const end = begin + count;
  block_begin_ = begin;
  // Nothing but the last op sets rip; a branch there overrides this.
  regs_.rip = end[-1].insn.next_ip();
  for (const Op<D>* op = begin; op != end; ++op) {
    current_ = &op->insn;
    op->run(*this, op->insn);
    if (signal_ != Signal::kNone) [[unlikely]] {
      const auto before = static_cast<uint64_t>(op - begin);
      if (faulted()) {
        regs_.rip = op->insn.ip;
        return before;
      }
      if (op + 1 != end) {
        regs_.rip = op->insn.next_ip();
      }
      return before + 1;
    }
  }
  return count;
}

template <class D>
uint64_t Cpu<D>::BeforeDrain(const Block<D>& block) const {
  const auto first = std::ranges::find_if(
      block.ops, [](const Op<D>& op) { return op.insn.drains; });
  const auto before = static_cast<uint64_t>(first - block.ops.begin());
  return before == 0 && buffer_->Empty() ? 1 : before;
}

template <class D>
uint64_t Cpu<D>::CurrentOffset() const {
  const auto bytes = reinterpret_cast<const char*>(current_) -
                     reinterpret_cast<const char*>(&block_begin_->insn);
  return retired_before_block_ + static_cast<uint64_t>(bytes) / sizeof(Op<D>);
}

template <class D>
Stop Cpu<D>::Run(uint64_t max_insns) {
  signal_ = Signal::kNone;
  fault_ = Fault();
  flags_.Reload();
  uint64_t retired = 0;
  while (retired < max_insns) {
    const Block<D>& block = code_.Find(memory_, regs_.rip);
    code_version_ = memory_.code_version();
    retired_before_block_ = retired;
    uint64_t budget = max_insns - retired;
    if (stops_to_drain_) [[unlikely]] {
      budget = std::min(budget, BeforeDrain(block));
      if (budget == 0) {
        signal_ = Signal::kDrain;
        break;
      }
    }
    retired += RunBlock(block, budget);
    if (signal_ > Signal::kReblock) [[unlikely]] {
      break;
    }
    signal_ = Signal::kNone;
  }
  flags_.StoreAll();
  return MakeStop(retired);
}

template <class D>
Stop Cpu<D>::MakeStop(uint64_t retired) {
  Stop stop;
  stop.insns_retired = retired;
  switch (signal_) {
    case Signal::kNone:
    case Signal::kReblock:
      stop.kind = StopKind::kBudget;
      break;
    case Signal::kObserver:
      stop.kind = StopKind::kObserver;
      break;
    case Signal::kSyscall:
      stop.kind = StopKind::kSyscall;
      break;
    case Signal::kBreakpoint:
      stop.kind = StopKind::kBreakpoint;
      break;
    case Signal::kFault:
      stop.kind = StopKind::kFault;
      stop.fault = fault_;
      break;
    case Signal::kNondeterministic:
      stop.kind = StopKind::kNondeterministic;
      break;
    case Signal::kDrain:
      stop.kind = StopKind::kDrain;
      break;
    case Signal::kUnsupported:
      stop.kind = StopKind::kUnsupported;
      stop.detail = code_.Describe(memory_, regs_.rip);
      break;
  }
  return stop;
}

template <class D>
void Cpu<D>::CompleteInsn(const InsnInput& input) {
  const Insn insn = code_.Find(memory_, regs_.rip).ops.front().insn;
  flags_.Reload();
  SetReg<uint64_t>(8 * kRax, d_.Const(input.rax));
  SetReg<uint64_t>(8 * kRbx, d_.Const(input.rbx));
  SetReg<uint64_t>(8 * kRcx, d_.Const(input.rcx));
  SetReg<uint64_t>(8 * kRdx, d_.Const(input.rdx));
  flags_.SetAll(input.rflags);
  regs_.rip = insn.next_ip();
}

template <class D>
x86::FeatureSet Cpu<D>::features() const {
  return code_.features();
}

template <class D>
void Cpu<D>::RaiseFetch(uint64_t addr) {
  const bool mapped = memory_.ProtectionAt(addr).has_value();
  Raise(!IsCanonical(addr) ? FaultKind::kGeneral
        : mapped           ? FaultKind::kProtection
                           : FaultKind::kUnmapped,
        addr);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_CPU_RUN_H_
