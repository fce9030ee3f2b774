// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <signal.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <thread>

#include "common/linux/syscall_table.h"
#include "recorder/qemu/plugin/exec.h"
#include "recorder/qemu/plugin/pin.h"
#include "recorder/qemu/plugin/plugin_recorder.h"
#include "recorder/qemu/plugin/qemu_api.h"

// What QEMU loads: registers the callbacks.

namespace clew::recorder {
namespace {

void OnVcpuInit(qemu_plugin_id_t, unsigned vcpu) {
  g_recorder->AddThread(vcpu);
}

void OnVcpuExit(qemu_plugin_id_t, unsigned vcpu) {
  g_recorder->ForgetThread(vcpu);
}

void OnTranslate(qemu_plugin_id_t, qemu_plugin_tb* tb) {
  g_recorder->Translate(tb);
}

void OnFlush(qemu_plugin_id_t) { g_recorder->OnFlush(); }

void OnSyscall(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t a0,
               uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
               uint64_t, uint64_t) {
  g_recorder->BeginSyscall(vcpu, SyscallNumber(static_cast<uint64_t>(number)),
                           std::array<uint64_t, 6>{a0, a1, a2, a3, a4, a5});
}

void OnChildSyscall(qemu_plugin_id_t, unsigned, int64_t number, uint64_t a0,
                    uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                    uint64_t a5, uint64_t, uint64_t) {
  g_recorder->child().Begin(SyscallNumber(static_cast<uint64_t>(number)),
                            std::array<uint64_t, 6>{a0, a1, a2, a3, a4, a5});
}

void OnChildSyscallReturn(qemu_plugin_id_t, unsigned, int64_t, int64_t result) {
  g_recorder->child().End(result);
}

void WatchChild(qemu_plugin_id_t id) {
  qemu_plugin_register_vcpu_syscall_cb(id, OnChildSyscall);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, OnChildSyscallReturn);
}

void OnSyscallReturn(qemu_plugin_id_t id, unsigned vcpu, int64_t,
                     int64_t result) {
  if (g_recorder->IsChild(vcpu, result)) {
    g_recorder->BecomeChild();
    qemu_plugin_reset(id, WatchChild);  // before the next block
    return;
  }
  g_recorder->EndSyscall(vcpu, result);
}

// With every signal blocked: one to the process as a whole, if the kernel gave
// it to this thread, would reach QEMU's handler in a thread that has no CPU.
void StartWatch() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([] { g_recorder->WatchTime(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Status Install(qemu_plugin_id_t id) {
  const char* text = getenv(kPluginConfigVariable);
  if (text == nullptr) {
    return InvalidArgument("{} is not set", kPluginConfigVariable);
  }
  CLEW_ASSIGN_OR_RETURN(config, ParsePluginConfig(text));
  CLEW_ASSIGN_OR_RETURN(recording, PluginRecorder::Create(config));
  g_recorder = recording.release();  // lives as long as the process
  PinToOneCpu();
  NoteOwnFile();
  StartWatch();
  qemu_plugin_register_vcpu_init_cb(id, OnVcpuInit);
  qemu_plugin_register_vcpu_exit_cb(id, OnVcpuExit);
  qemu_plugin_register_flush_cb(id, OnFlush);
  qemu_plugin_register_vcpu_tb_trans_cb(id, OnTranslate);
  qemu_plugin_register_vcpu_syscall_cb(id, OnSyscall);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, OnSyscallReturn);
  return {};
}

}  // namespace
}  // namespace clew::recorder

extern "C" {

[[gnu::visibility("default")]] extern const int qemu_plugin_version;
const int qemu_plugin_version = 1;

[[gnu::visibility("default")]] int qemu_plugin_install(qemu_plugin_id_t id,
                                                       const void*, int,
                                                       char**);

int qemu_plugin_install(qemu_plugin_id_t id, const void*, int, char**) {
  const clew::Status status = clew::recorder::Install(id);
  if (!status) {
    fprintf(stderr, "clew-qemu-plugin: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // extern "C"
