// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/exec_arguments.h"
#include "recorder/qemu/exec_call.h"
#include "recorder/qemu/plugin/pin.h"
#include "recorder/qemu/plugin/qemu_api.h"
#include "recorder/qemu/plugin/recording.h"

// Child processes, which go on in a copy of QEMU that records nothing, and
// execve.

namespace clew::recorder {
namespace {

std::vector<std::string> OwnCommandLine() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

std::string OwnVariable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// Of every thread: there will be one, and it makes its own.
Status RemoveInputs(const std::string& folder) {
  CLEW_ASSIGN_OR_RETURN(paths, FindRawInputs(folder));
  for (const std::string& path : paths) {
    if (unlink(path.c_str()) != 0) {
      return SystemError(errno, fmt::format("cannot remove {:?}", path));
    }
  }
  return {};
}

}  // namespace

bool Recording::IsChild(unsigned vcpu, int64_t result) const {
  const Thread* thread = by_vcpu_[vcpu].get();
  return result == 0 && !is_child_ && thread != nullptr && thread->in_syscall &&
         MakesProcess(thread->call);
}

// Locks may be held by threads that are not here, so none is taken. Their CPUs
// QEMU has forgotten, and has to forget for plugins, too: it fails where a CPU
// is made with a number that a plugin knows.
void Recording::BecomeChild() {
  is_child_ = true;
  for (const auto& thread : by_vcpu_) {
    if (thread != nullptr && thread.get() != g_runner.thread &&
        thread->cpu != nullptr) {
      qemu_plugin_vcpu_exit_hook(thread->cpu);
    }
  }
  g_runner = Runner();
  limit_->Abandon();
  tracer_->Abandon();
  blocks_.Abandon();
  outcome_.Abandon();
  raw_code_.Abandon();
  for (Thread* thread : by_slot_) {
    if (thread != nullptr && thread->inputs) {
      thread->inputs->file().Abandon();
    }
  }
  Unpin();
}

// QEMU would let the host run the program, unrecorded. So it is run by a QEMU
// in this process that records it from its start; what was recorded so far is
// dropped. Returns where the kernel will refuse the call.
void Recording::BeginExec(const Thread& me) {
  const auto& args = me.call.args;
  const auto call =
      ResolveScripts(ReadExecCall(args[0], args[1], args[2], memory_));
  if (!call && call.error().code == ErrorCode::kInvalidArgument) {
    return;
  }
  if (!call) {
    Refuse(call.error().message);
  }
  const auto line = QemuCommandLine(OwnCommandLine(), *call);
  const auto environment = QemuEnvironment(*call, OwnVariable("LD_PRELOAD"),
                                           OwnVariable(kSessionVariable));
  if (const Status removed = RemoveInputs(session_.folder); !removed) {
    Refuse(removed.error().message);
  }
  Unpin();
  execve("/proc/self/exe", ExecArguments(line).data(),
         ExecArguments(environment).data());
  GiveUp(fmt::format("execve of {:?}: cannot start QEMU again: {}", call->path,
                     strerror(errno)));
}

}  // namespace clew::recorder
