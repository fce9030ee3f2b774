// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_CODE_RECORDER_H_
#define CLEW_RECORDER_QEMU_PLUGIN_CODE_RECORDER_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "common/result.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/generated_code.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/translation_block.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/raw_file.h"

namespace clew::recorder {

// The files of code.
struct CodeFiles {
  [[nodiscard]] static Result<CodeFiles> Open(const Context& context);

  RawFile raw_code;   // bytes that no file holds (recorder/qemu/raw_code.h)
  RawFile code_list;  // of every block (recorder/qemu/code_list.h)
};

// Code that QEMU translates. That which no file holds is recorded when it is
// translated, which is before it runs first and after it was changed; code that
// replaced other code has a version, and the trace of each core tells the time
// before it runs a version that is new to it.
class CodeRecorder {
 public:
  // References outlive this.
  CodeRecorder(Context& context, const ProgramTime& time,
               const BlockCallbacks& callbacks, CodeFiles files);

  // Any thread that QEMU translates for, with the turn or without.
  void Translate(qemu_plugin_tb* tb);
  // `block`, which has a code_version, is entered by the thread that has the
  // turn; the block before is closed.
  void ShowVersion(const TranslationBlock& block);
  // A thread goes on on `core`: a reader knows the versions that there are.
  void ShowAll(uint32_t core) {
    versions_shown_[core] = code_.latest_version();
  }

  void AddHandler(uint64_t ip) { blocks_.AddHandler(ip); }
  // The program mapped a file's code.
  void Map(const ExecMapping& mapping);
  // After a call that may have changed what is mapped.
  void Release(const SyscallCall& call, uint64_t result);

  [[nodiscard]] Status Close();
  // In a copy of the process: without a lock, and without writing.
  void Abandon();

 private:
  // Proof that the caller holds mutex_.
  using Lock = std::lock_guard<std::mutex>;
  void MapInitialCode(const Lock& lock);
  void WriteChange(const Lock& lock, const CodeChange& change);

  Context& context_;
  const ProgramTime& time_;
  BlockTable blocks_;
  std::mutex mutex_;  // guards the next three
  bool initial_code_mapped_ = false;
  GeneratedCode code_;
  RawFile raw_code_;
  std::vector<uint64_t> versions_shown_;  // of code_, by core
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_CODE_RECORDER_H_
