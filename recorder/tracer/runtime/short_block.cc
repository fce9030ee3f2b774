#include "recorder/tracer/runtime/short_block.h"

#include <algorithm>

#include "recorder/tracer/runtime/code/code_check.h"
#include "recorder/tracer/runtime/code/copy_insn.h"
#include "recorder/tracer/runtime/executable.h"
#include "recorder/tracer/runtime/ways.h"

namespace clew::tracer {
namespace {

using x86::BranchClass;

class ShortBlockWriter {
 public:
  ShortBlockWriter(Runtime& runtime, uint64_t addr)
      : block_(runtime.short_block), area_(ArenaFor(runtime, addr)) {
    block_.entry = area_.shorts;
    block_.start = addr;
    block_.code_bytes = 0;
    block_.insn_count = 0;
    block_.ends_with_branch = false;
    area_.hot = Code(reinterpret_cast<uint8_t*>(area_.shorts));
    area_.numbers =
        reinterpret_cast<uint64_t*>(area_.shorts + Arena::kShortBytes / 2);
  }

  bool Write(const Executable& memory, uint64_t insns) {
    const uint64_t most = std::min<uint64_t>(insns, ShortBlock::kInsnsMax);
    while (block_.insn_count < most && !block_.ends_with_branch && !is_cut_ &&
           WriteNext(memory)) {
    }
    if (!block_.ends_with_branch) {
      ExitTo(at());
    }
    return block_.insn_count > 0;
  }

 private:
  uint64_t at() const { return block_.start + block_.code_bytes; }

  bool WriteNext(const Executable& memory) {
    const Insn insn = ReadInsn(at(), memory.end);
    if (insn.layout.status != x86::LayoutStatus::kWhole || IsStepped(insn) ||
        insn.branch.branch_class == BranchClass::kFar) {
      return false;
    }
    std::ranges::copy(insn.all(), &block_.code[block_.code_bytes]);
    block_.code_bytes += insn.layout.length;
    const uint64_t offset = AddrOf(area_.hot.at()) - block_.entry;
    block_.insns[block_.insn_count++] = {offset, WriteInsn(insn)};
    is_cut_ = memory.is_writable && MayWrite(insn);
    return true;
  }

  // Returns the register whose value is in the state, where it may fault.
  Register WriteInsn(const Insn& insn) {
    Code& code = area_.hot;
    block_.ends_with_branch =
        insn.branch.branch_class != BranchClass::kNone &&
        insn.branch.branch_class != BranchClass::kRepString;
    switch (insn.branch.branch_class) {
      case BranchClass::kNone:
      case BranchClass::kRepString:
      case BranchClass::kFar:
        return CopyInsn(code, insn);
      case BranchClass::kConditional: {
        Code displacement(CopyConditional(code, insn));
        ExitTo(insn.next());
        displacement.Relative(AddrOf(code.at()));
        ExitTo(insn.target());
        return kNoRegister;
      }
      case BranchClass::kDirectCall:
        PushAddress(area_, insn.next());
        [[fallthrough]];
      case BranchClass::kDirectJump:
        ExitTo(insn.target());
        return kNoRegister;
      case BranchClass::kIndirectJump:
      case BranchClass::kIndirectCall:
        Save(code, kRcx);
        LoadTarget(code, insn);
        if (insn.branch.branch_class == BranchClass::kIndirectCall) {
          PushAddress(area_, insn.next());
        }
        Jump(code, area_.cut);
        return kRcx;
      case BranchClass::kReturn:
        Save(code, kRcx);
        PopTarget(code, insn);
        Jump(code, area_.cut);
        return kRcx;
    }
    return kNoRegister;
  }

  void ExitTo(uint64_t target) {
    Save(area_.hot, kRcx);
    LoadNumber(area_.hot, kRcx, target);
    Jump(area_.hot, area_.cut);
  }

  ShortBlock& block_;
  Arena area_;           // the cache's, but for where code and numbers go
  bool is_cut_ = false;  // what follows may have become other code
};

}  // namespace

bool WriteShortBlock(Runtime& runtime, uint64_t addr, uint64_t insns) {
  const Executable memory = ExecutableFrom(runtime, addr);
  return memory.end != addr &&
         ShortBlockWriter(runtime, addr).Write(memory, insns);
}

}  // namespace clew::tracer
