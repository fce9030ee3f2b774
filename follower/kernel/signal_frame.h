#ifndef CLEW_FOLLOWER_KERNEL_SIGNAL_FRAME_H_
#define CLEW_FOLLOWER_KERNEL_SIGNAL_FRAME_H_

#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/xsave.h"

namespace clew::follower {

// Gives `registers` what rt_sigreturn(2) restores of the frame at rsp. Returns
// false, with nothing changed, if the frame is not mapped. `layout` is that of
// the recorded CPU.
bool RestoreSignalFrame(const machine::Memory& memory,
                        const machine::XsaveLayout& layout,
                        machine::Registers& registers);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_SIGNAL_FRAME_H_
