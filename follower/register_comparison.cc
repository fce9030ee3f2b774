#include "follower/register_comparison.h"

namespace clew::follower {
namespace {

constexpr std::array<const char*, 16> kNames = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

bool IsOfTheKernel(const ThreadState& state, size_t gpr) {
  return state.phase == ThreadPhase::kInCall &&
         (gpr == kRax || gpr == kRcx || gpr == kR11);
}

void Compare(Tid thread, const char* name, uint64_t machine, uint64_t dumped,
             RegisterComparison& result) {
  ++result.compared;
  if (machine == dumped) {
    ++result.equal;
  } else {
    result.differences.push_back(
        {.thread = thread, .name = name, .machine = machine, .dumped = dumped});
  }
}

}  // namespace

RegisterComparison CompareRegisters(const Process& process,
                                    std::span<const DumpedRegisters> dumped) {
  RegisterComparison result;
  for (const DumpedRegisters& wanted : dumped) {
    const auto thread = process.tape().IndexOf(wanted.thread);
    if (!thread) {
      continue;
    }
    const ThreadState& state = process.thread(*thread);
    const machine::Registers& found = state.registers;
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (!IsOfTheKernel(state, i)) {
        Compare(wanted.thread, kNames[i], found.gpr[i], wanted.gpr[i], result);
      }
    }
    Compare(wanted.thread, "rip", found.rip, wanted.rip, result);
    Compare(wanted.thread, "fs_base", found.fs_base, wanted.fs_base, result);
  }
  return result;
}

}  // namespace clew::follower
