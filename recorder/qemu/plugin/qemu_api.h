// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_QEMU_API_H_
#define CLEW_RECORDER_QEMU_PLUGIN_QEMU_API_H_

#include <cstddef>
#include <cstdint>

// The part of QEMU 7.2 that this module calls. QEMU's packages ship no header
// for plugins; these are the documented plugin API, version 1 ("QEMU TCG
// Plugins"), and a few functions that the program exports besides.

extern "C" {

using qemu_plugin_id_t = uint64_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct CPUState;

using QemuUdataCallback = void (*)(unsigned vcpu, void* data);
using QemuMemoryCallback = void (*)(unsigned vcpu, uint32_t info, uint64_t addr,
                                    void* data);

// Takes all callbacks away, once the calling CPU has left its system call, and
// calls the function, which may register others.
void qemu_plugin_reset(qemu_plugin_id_t, void (*)(qemu_plugin_id_t));
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t,
                                       void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t,
                                       void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_flush_cb(qemu_plugin_id_t,
                                   void (*)(qemu_plugin_id_t));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t,
                                                    qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, QemuUdataCallback,
                                          int flags, void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*,
                                            QemuUdataCallback, int flags,
                                            void* data);
// `kinds`: kQemuAccesses.
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, QemuMemoryCallback,
                                      int flags, int kinds, void* data);
void qemu_plugin_register_vcpu_syscall_cb(
    qemu_plugin_id_t,
    void (*)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t,
                                              void (*)(qemu_plugin_id_t,
                                                       unsigned, int64_t number,
                                                       int64_t result));
size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, size_t);
size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);

// Not of the plugin API.
CPUState* qemu_get_cpu(int index);
// Lets plugins forget a CPU, whose number may be given to another one.
void qemu_plugin_vcpu_exit_hook(CPUState*);
// Flags of a page as the program knows it.
int page_get_flags(uint64_t addr);
// A CPU that waits must not count as executing, or an exclusive section
// (start_exclusive) waits for it for ever.
void cpu_exec_start(CPUState*);
void cpu_exec_end(CPUState*);
// Leaves translated code for QEMU's loop, which goes on at env's rip.
[[noreturn]] void cpu_loop_exit_noexc(CPUState*);
// The arithmetic flags, computed from the lazy state in `env`.
uint32_t cpu_cc_compute_all(void* env, int op);

extern __thread CPUState* thread_cpu;
extern uint64_t guest_base;

}  // extern "C"

namespace clew::recorder {

inline constexpr int kQemuCallbackNoRegs = 0;
// Reads and writes. (7.2 takes one for the other if asked for one.)
inline constexpr int kQemuAccesses = 3;

// Bits of page_get_flags().
inline constexpr int kQemuPageRead = 1;
inline constexpr int kQemuPageWrite = 2;
inline constexpr int kQemuPageExec = 4;
inline constexpr int kQemuPageValid = 8;
inline constexpr int kQemuPageWriteOrg = 16;  // before QEMU protected it

// What a system call callback gets as the result when it was a return from a
// signal handler. When the call is to be made again, that is kRestartSys.
inline constexpr int64_t kQemuSigreturn = -513;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_QEMU_API_H_
