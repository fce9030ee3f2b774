#include "machine/shadow.h"

#include <bit>

#include "machine/cpu_run.h"
#include "machine/shadow_domain.h"

namespace clew::machine {

template class BlockCache<Shadowed>;
template class Cpu<Shadowed>;

ShadowCodeCache::ShadowCodeCache(x86::FeatureSet features)
    : blocks_(std::make_unique<BlockCache<Shadowed>>(features)) {}
ShadowCodeCache::~ShadowCodeCache() = default;
ShadowCodeCache::ShadowCodeCache(ShadowCodeCache&&) noexcept = default;
ShadowCodeCache& ShadowCodeCache::operator=(ShadowCodeCache&&) noexcept =
    default;

ShadowMachine::ShadowMachine(Registers& registers, Memory& memory,
                             ShadowMemory& shadow, ShadowCodeCache& code,
                             ExprPool& pool, ShadowObserver& observer)
    : thread_(std::make_unique<ShadowThread>()) {
  thread_->pool = &pool;
  thread_->memory = &shadow;
  thread_->observer = &observer;
  thread_->last = registers;
  cpu_ = std::make_unique<Cpu<Shadowed>>(registers, memory, *code.blocks_,
                                         Shadowed{thread_.get()});
  thread_->current = cpu_->current_place();
}
ShadowMachine::~ShadowMachine() = default;
ShadowMachine::ShadowMachine(ShadowMachine&&) noexcept = default;

namespace {

// What was changed from outside since the last run has no shadow.
void DropStaleShadows(ShadowThread& thread, const Registers& regs) {
  for (size_t i = 0; i < regs.gpr.size(); ++i) {
    if (regs.gpr[i] != thread.last.gpr[i]) {
      thread.gpr[i] = nullptr;
    }
  }
  for (unsigned lane = 0; lane < kVecLanes; ++lane) {
    if (regs.vec[lane] == thread.last.vec[lane]) {
      continue;
    }
    for (unsigned number = 0; number < kVecRegisters; ++number) {
      for (unsigned i = 2 * lane; i < 2 * lane + 2; ++i) {
        if (regs.quad(number, i) != thread.last.quad(number, i)) {
          thread.vec[number][i] = nullptr;
        }
      }
    }
  }
  if (regs.rflags != thread.last.rflags) {
    thread.flags = {};
  }
}

}  // namespace

Stop ShadowMachine::Run(uint64_t max_insns) {
  DropStaleShadows(*thread_, cpu_->regs());
  Stop stop = cpu_->Run(max_insns);
  thread_->last = cpu_->regs();
  return stop;
}

void ShadowMachine::CompleteInsn(const InsnInput& input) {
  cpu_->CompleteInsn(input);
  thread_->last = cpu_->regs();
}

const Expr* ShadowMachine::GprShadow(unsigned number) const {
  return thread_->gpr[number];
}

const Expr* ShadowMachine::FlagShadow(uint64_t bit) const {
  return thread_->flags[static_cast<size_t>(std::countr_zero(bit))];
}

void ShadowMachine::SetFlagShadow(uint64_t bit, const Expr* expr) {
  thread_->flags[static_cast<size_t>(std::countr_zero(bit))] = expr;
  thread_->last.rflags = cpu_->regs().rflags;
}

void ShadowMachine::InheritFrom(const ShadowMachine& parent) {
  thread_->gpr = parent.thread_->gpr;
  thread_->flags = parent.thread_->flags;
  thread_->vec = parent.thread_->vec;
  thread_->last = parent.thread_->last;
}

void ShadowMachine::SetGprShadow(unsigned number, const Expr* expr) {
  thread_->gpr[number] = expr;
  thread_->last.gpr[number] = cpu_->regs().gpr[number];
}

}  // namespace clew::machine
