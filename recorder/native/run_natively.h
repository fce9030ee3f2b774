#ifndef CLEW_RECORDER_NATIVE_RUN_NATIVELY_H_
#define CLEW_RECORDER_NATIVE_RUN_NATIVELY_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bundle/manifest/manifest.h"
#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/before_insn.h"
#include "recorder/native/child_taker.h"
#include "recorder/native/leaps.h"
#include "recorder/native/mapped_files.h"
#include "recorder/native/program_run.h"
#include "recorder/qemu/plugin_config.h"

namespace clew::recorder {

// How a program is recorded, launched or attached to.
struct NativeHow {
  PluginConfig config;
  // Somebody else records the inputs, from when it is `started`, or `stopped`,
  // on: every call is made as the program makes it, and start.pb says what the
  // CPU tells.
  bool inputs_are_tapped = false;
  BeforeInsn before_insn = {};  // may be null
  LeapsMaker make_leaps = {};   // null: each instruction is stepped
  // All threads run at once, by this. Null: one after another, stepped.
  RunMaker make_run = {};
  ChildTaker take_child = {};  // of processes that it makes; null: they go on
  // Of the last program that it runs; may be null.
  MappedFiles* files = nullptr;
};

struct NativeLaunch {
  NativeHow how;
  std::vector<std::string> command;
  bundle::Surroundings surroundings;
  // Called in the child before it executes the program: only what is safe after
  // fork.
  std::function<void()> enter_group;
  // Called in the recorder when the program is at its first instruction. Its
  // error is that of the recording.
  std::function<Status(pid_t)> started;
  // Called in the recorder where a signal (SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP)
  // would have stopped the program, which goes on when this returns.
  std::function<void(int signal)> on_stop;
};

// A process that runs already.
struct NativeAttach {
  NativeHow how;
  int32_t process = 0;
  // It was handed over to this process; nullopt: it runs.
  std::optional<HandedOver> handed_over;
  // Whether to end the recording, asked each turn; it goes on then unrecorded.
  std::function<bool()> is_over;
  // Called once it is stopped, and is ready to go on from where it is. Its
  // error is that of the recording.
  std::function<Status()> stopped;
  // Called once it is no longer stopped.
  std::function<void()> begun;
  // Called when the recording is over and the process, which is stopped, is
  // about to go on unrecorded. Its error is that of the recording.
  std::function<Status()> ended;
  // Called when it runs another program, with its arguments; may be null.
  std::function<void(const std::vector<std::string>& arguments)> executed;
};

// Runs the program on this host's CPU, one instruction at a time, and leaves in
// config.folder what the module in QEMU does (recorder/qemu/plugin_config.h):
// trace, inputs, start state, core dump, outcome. Returns the wait status of
// the program, which ended as it would have without the recorder.
//
// One thread runs at any moment; the scheduler says which, as under QEMU. The
// kernel says which ones can run: a call that waits does so in the kernel. So
// the same seed gives the same run for a program whose inputs, and the times at
// which they come, are the same.
//
// kUnsupported: the program did what cannot be recorded (the message says
// what); it is ended then. kSystem: ptrace(2) is refused.
[[nodiscard]] Result<int> RunNatively(const NativeLaunch& launch);

// Records a process from here on, as RunNatively does; 0 as wait status says
// that it was let go. Whatever ends the recording, the process goes on, or ends
// as it would have without. Fails besides as TracedProcess::Attach,
// Attachment::Make, `make_leaps` and `make_run` do.
[[nodiscard]] Result<int> RunAttached(const NativeAttach& attach);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_RUN_NATIVELY_H_
