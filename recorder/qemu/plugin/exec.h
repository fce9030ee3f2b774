// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_EXEC_H_
#define CLEW_RECORDER_QEMU_PLUGIN_EXEC_H_

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/context.h"

namespace clew::recorder {

// `call` is execve(2), and is about to be made. QEMU would let the host run the
// program, unrecorded. So it is run by a QEMU in this process that records it
// from its start; what was recorded so far is dropped. Returns where the kernel
// will refuse the call.
void RecordExec(Context& context, const SyscallCall& call);

// As far as the call of a child process names the program's file by what procfs
// has of a process, where the kernel would find QEMU, makes it as the kernel
// would for the program. Returns if it does not, or if the kernel refuses it.
void ExecOwnFile(const GuestMemory& memory,
                 const std::array<uint64_t, 6>& args);

// To be called while the folder is that in which QEMU was started: the
// program's file may be named from there.
void NoteOwnFile();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_EXEC_H_
