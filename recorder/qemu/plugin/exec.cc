// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/exec.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/os/exec_arguments.h"
#include "recorder/qemu/calls/exec_call.h"
#include "recorder/qemu/plugin/pin.h"

namespace clew::recorder {
namespace {

std::vector<std::string> OwnCommandLine() {
  std::ifstream file("/proc/thread-self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

std::string FindOwnProgram() {
  const std::vector<std::string> line = OwnCommandLine();
  const auto plugin = std::ranges::find(line, "-plugin");
  const std::string name = line.end() - plugin > 2 ? plugin[2] : "";
  std::error_code error;
  return std::filesystem::absolute(name, error);
}

// The program's file, which stands behind QEMU's options.
const std::string& OwnProgram() {
  static const std::string program = FindOwnProgram();
  return program;
}

bool NamesOwnFile(const std::string& path) {
  return path == "/proc/self/exe" || path == "/proc/thread-self/exe" ||
         path == fmt::format("/proc/{}/exe", getpid());
}

std::string OwnVariable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void RecordExec(Context& context, const SyscallCall& call) {
  const auto& args = call.args;
  ExecCall wanted = ReadExecCall(args[0], args[1], args[2], context.memory);
  if (NamesOwnFile(wanted.path)) {
    wanted.path = OwnProgram();
  }
  const auto exec = ResolveScripts(std::move(wanted));
  if (!exec && exec.error().code == ErrorCode::kInvalidArgument) {
    return;
  }
  if (!exec) {
    context.GiveUp(exec.error().message);
  }
  const auto line = QemuCommandLine(OwnCommandLine(), *exec);
  const auto environment = QemuEnvironment(*exec, OwnVariable("LD_PRELOAD"),
                                           OwnVariable(kPluginConfigVariable));
  if (const Status removed = RemoveRawInputs(context.config.folder); !removed) {
    context.GiveUp(removed.error().message);
  }
  Unpin();
  execve("/proc/thread-self/exe", ExecArguments(line).data(),
         ExecArguments(environment).data());
  context.GiveUp(fmt::format("execve of {:?}: cannot start QEMU again: {}",
                             exec->path, strerror(errno)));
}

void NoteOwnFile() { (void)OwnProgram(); }

void ExecOwnFile(const GuestMemory& memory,
                 const std::array<uint64_t, 6>& args) {
  const ExecCall call = ReadExecCall(args[0], args[1], args[2], memory);
  if (NamesOwnFile(call.path)) {
    execve(OwnProgram().c_str(), ExecArguments(call.arguments).data(),
           ExecArguments(call.environment).data());
  }
}

}  // namespace clew::recorder
