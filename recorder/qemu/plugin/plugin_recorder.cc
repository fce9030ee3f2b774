// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/plugin_recorder.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/pin.h"
#include "recorder/qemu/plugin/qemu_api.h"

namespace clew::recorder {

PluginRecorder* g_recorder = nullptr;

PluginRecorder::PluginRecorder(Context context, CodeFiles code_files,
                               ChildNotes notes)
    : parts_(std::move(context), HotPathCallbacks(), std::move(code_files),
             notes) {}

Result<std::unique_ptr<PluginRecorder>> PluginRecorder::Create(
    const PluginConfig& config) {
  CLEW_ASSIGN_OR_RETURN(context, Context::Open(config));
  CLEW_ASSIGN_OR_RETURN(code_files, CodeFiles::Open(context));
  CLEW_ASSIGN_OR_RETURN(notes, ChildNotes::Make());
  return std::unique_ptr<PluginRecorder>(
      new PluginRecorder(std::move(context), std::move(code_files), notes));
}

void PluginRecorder::AddThread(unsigned vcpu) {
  if (vcpu >= ThreadTable::kThreadsMax) {
    parts_.context.GiveUp(
        fmt::format("more than {} threads at once", ThreadTable::kThreadsMax));
  }
  const Locked lock = parts_.turns.Lock();
  parts_.threads.Add(vcpu).cpu = qemu_get_cpu(static_cast<int>(vcpu));
}

bool PluginRecorder::EnterThread(unsigned vcpu, uint64_t ip, GuestEnv env) {
  if (is_child_) {
    return false;  // into QEMU's loop, which drops the callbacks
  }
  Thread& me = parts_.threads.Of(vcpu);
  me.env = env;
  if (!started_) {
    started_ = true;
    Start(me, ip);
  }
  return parts_.turns.Enter(me);
}

void PluginRecorder::Start(Thread& me, uint64_t ip) {
  if (const std::string why = me.env.CheckLayout(ip); !why.empty()) {
    parts_.context.GiveUp(
        fmt::format("this QEMU keeps registers elsewhere than version 7.2 "
                    "({}); install Debian 12's qemu-user",
                    why));
  }
  (void)parts_.threads.TakeNewborn();  // no clone makes it
  me.tid = Tid(static_cast<int32_t>(syscall(SYS_gettid)));
  parts_.inputs.Open(me);
  if (const Status status = parts_.start.Write(me, ip, parts_.time.turn_end());
      !status) {
    parts_.context.GiveUp(status.error().message);
  }
  parts_.turns.Start(me);
}

void PluginRecorder::EndTurn(uint64_t index) {
  Thread& me = *g_runner.thread;
  const uint64_t now = g_runner.block_start + index;
  me.block = g_runner.block;
  me.stop_index = index;
  if (parts_.time.IsOver(now)) {
    parts_.ending.EndAs(parts_.turns.Lock(), FailureKind::kTimeLimit, now);
  }
  parts_.turns.EndTurn(me);
}

void PluginRecorder::ForgetThread(unsigned vcpu) {
  Thread& me = parts_.threads.Of(vcpu);
  if (me.state != Thread::State::kGone) {
    me.cpu = nullptr;
    return;  // a CPU whose thread never ran, or that runs in another process
  }
  syscalls_.RecordExit(me);
  EndIfHung(parts_.turns.Forget(me));
}

void PluginRecorder::EndIfHung(std::optional<Locked> lock) {
  if (lock) {
    parts_.ending.EndAs(*std::move(lock), FailureKind::kHang,
                        parts_.time.turn_end());
  }
}

void PluginRecorder::BeginSyscall(unsigned vcpu, uint64_t number,
                                  const std::array<uint64_t, 6>& args) {
  Thread& me = parts_.threads.Of(vcpu);
  if (&me != g_runner.thread) {
    parts_.context.GiveUp(
        "a system call from a thread that does not have the turn");
  }
  syscalls_.Begin(me, number, args);
  if (syscalls_.MayWait(me)) {
    EndIfHung(parts_.turns.LetWait(me));
  }
}

void PluginRecorder::EndSyscall(unsigned vcpu, int64_t result) {
  if (Thread& me = parts_.threads.Of(vcpu); me.in_syscall) {
    syscalls_.End(me, result);
  }
}

bool PluginRecorder::IsChild(unsigned vcpu, int64_t result) const {
  const Thread* const thread = parts_.threads.Find(vcpu);
  return result == 0 && !is_child_ && thread != nullptr && thread->in_syscall &&
         MakesProcess(thread->call);
}

// Locks may be held by threads that are not here, so none is taken. Their CPUs
// QEMU has forgotten, and has to forget for plugins, too: it fails where a CPU
// is made with a number that a plugin knows.
void PluginRecorder::BecomeChild() {
  is_child_ = true;
  for (const Thread* thread : parts_.threads.all()) {
    if (thread != g_runner.thread && thread->cpu != nullptr) {
      qemu_plugin_vcpu_exit_hook(thread->cpu);
    }
    if (thread->inputs) {
      thread->inputs->file().Abandon();
    }
  }
  const SyscallCall call = g_runner.thread->call;
  g_runner = Runner();
  child_.Start(call.number, call.args);
  parts_.context.Abandon();
  parts_.code.Abandon();
  Unpin();
}

bool PluginRecorder::EnterHandler(const TranslationBlock& block, GuestEnv env) {
  return parts_.signals.EnterHandler(block, env);
}

void PluginRecorder::EndBySignal(int32_t signal) {
  parts_.ending.EndBySignal(signal);
}

// Making the first thread does that, when the new one may be waiting at its
// first block. A thread inside a block would return into code that is gone.
void PluginRecorder::OnFlush() {
  if (parts_.turns.CountFlush() && !is_child_) {
    parts_.context.GiveUp(
        "QEMU dropped its translations while several threads ran; the program "
        "has more code than the recorder can follow");
  }
}

std::optional<time_t> PluginRecorder::SecondsOfCall() const {
  return g_runner.thread == nullptr ? std::nullopt
                                    : syscalls_.SecondsOfCall(*g_runner.thread);
}

}  // namespace clew::recorder
