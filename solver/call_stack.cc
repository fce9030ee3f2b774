#include "solver/call_stack.h"

#include "common/x86/layout.h"

namespace clew::solver {
namespace {

constexpr uint32_t kSlotBytes = 8;
constexpr uint64_t kCallBytesMin = 2;

// A CALL alone stores the address of the next instruction.
bool IsCall(const machine::ObservedAccess& access) {
  return access.kind == AccessKind::kWrite && access.size_bytes == kSlotBytes &&
         access.value - access.ip >= kCallBytesMin &&
         access.value - access.ip <= x86::kInsnBytesMax;
}

}  // namespace

bool CallStack::Returns(const machine::ObservedAccess& access) const {
  return !empty() && access.kind == AccessKind::kRead &&
         access.size_bytes == kSlotBytes && access.addr == top().slot &&
         access.value == top().return_to.as_int();
}

void CallStack::Drop(uint64_t rsp) {
  while (!empty() && top().slot < rsp) {
    frames_.pop_back();
  }
}

void CallStack::Note(const machine::ObservedAccess& access,
                     const IsProgram& is_program) {
  if (!IsCall(access)) {
    return;
  }
  Drop(access.addr + 1);  // what lay in its slot is over
  const TraceeAddr return_to(access.value);
  frames_.push_back({.slot = access.addr,
                     .return_to = return_to,
                     .caller = is_program(return_to) ? return_to : caller()});
}

}  // namespace clew::solver
