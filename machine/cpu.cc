#include "machine/cpu.h"

#include "machine/cpu_run.h"

namespace clew::machine {

template class BlockCache<Concrete>;
template class Cpu<Concrete>;

CodeCache::CodeCache(x86::FeatureSet features)
    : features_(features),
      blocks_(std::make_unique<BlockCache<Concrete>>(features)) {}
CodeCache::~CodeCache() = default;
CodeCache::CodeCache(CodeCache&&) noexcept = default;
CodeCache& CodeCache::operator=(CodeCache&&) noexcept = default;

Machine::Machine(Registers& registers, Memory& memory, CodeCache& code)
    : cpu_(std::make_unique<Cpu<Concrete>>(registers, memory, *code.blocks_)) {}
Machine::~Machine() = default;
Machine::Machine(Machine&&) noexcept = default;

Stop Machine::Run(uint64_t max_insns) { return cpu_->Run(max_insns); }

void Machine::CompleteInsn(const InsnInput& input) {
  cpu_->CompleteInsn(input);
}

void Machine::set_observer(AccessObserver* observer) {
  cpu_->set_observer(observer);
}

void Machine::set_store_buffer(StoreBuffer* buffer, uint64_t insn,
                               bool stops_to_drain) {
  cpu_->set_store_buffer(buffer, insn, stops_to_drain);
}

bool NextDrains(const Registers& registers, const Memory& memory,
                CodeCache& code) {
  return code.blocks_->Find(memory, registers.rip).ops.front().insn.drains;
}

}  // namespace clew::machine
