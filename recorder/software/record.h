#ifndef CLEW_RECORDER_SOFTWARE_RECORD_H_
#define CLEW_RECORDER_SOFTWARE_RECORD_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/manifest/manifest.h"
#include "common/fail_on.h"
#include "common/inputs.h"
#include "common/os/file.h"
#include "common/result.h"
#include "recorder/input_tap.h"
#include "recorder/native/before_insn.h"
#include "recorder/qemu/code_list.h"
#include "recorder/qemu/plugin_config.h"

namespace clew::recorder {

// What runs the program and makes its trace.
enum class SoftwareSource : uint8_t {
  kQemu,    // qemu-x86_64 with a module
  kStep,    // this host's CPU, one instruction at a time
  kTracer,  // this host's CPU, by a copy of the program's code
};

// Makes what records the inputs into the file `path`.
using InputTapMaker = std::function<Result<std::unique_ptr<InputTap>>(
    FileSystem& files, const std::string& path)>;

struct RecordOptions {
  SoftwareSource source = SoftwareSource::kTracer;
  std::vector<std::string> command;  // argv; [0] is searched for in PATH
  // With kStep and kTracer, not free: a process that runs already, in the place
  // of `command`.
  int32_t process = 0;
  // Of a process that runs: whether to end its recording, asked often.
  std::function<bool()> is_over;
  // Absent: those of this process, and [0] decides which file is run.
  std::optional<bundle::Surroundings> surroundings;
  std::string output;  // the bundle to make
  // With kTracer: all threads run at once, on the host's cores. Each is a core
  // of the trace; `seed` and `quantum_insns` say nothing.
  bool is_free = false;
  uint32_t cores = 4;            // virtual ones, 1..64
  uint64_t seed = 1;             // of everything that is left to chance
  uint32_t quantum_insns = 300;  // mean; 1..1000000
  bool timing = true;            // TSC and MTC packets; off: none
  // 64 * 2^n instructions between MTCs. Absent: 6 under QEMU, where the trace
  // would be twice as large with 3; 3 by step, as `perf record` has it.
  std::optional<uint32_t> mtc_period;
  bool cyc = false;
  uint32_t psb_period_bytes = 4096;
  FailOn fail_on;
  // Of the time in which the program runs or waits for something outside: 10 ns
  // for each instruction, and real time while none of its threads can run. A
  // run that takes longer ends as FailureKind::kTimeLimit. 0: no limit.
  uint32_t timeout_s = 0;
  // Of trace and inputs together while the program runs; a bundle of them needs
  // as much again for a moment. Beyond it they are dropped, and the program
  // goes on (Outcome::dropped). 0: no limit.
  uint64_t size_limit_bytes = 0;
  bool core_on_exit = true;  // a core dump also of a run that did not fail
  // With is_free: only the end of trace and inputs is kept, between a half of
  // this and all of it; the bundle begins in mid-run then. 0: all is kept.
  uint64_t ring_bytes = 0;
  // kUnsupported at the first deviation (common/linux/deviations.h).
  bool strict = false;
  bool keep_only_if_failed = false;  // no bundle of such a run
  // True for an instruction that can be replayed; absent: not asked.
  std::function<bool(std::span<const std::byte>)> can_replay;
  // With kStep: inputs are recorded as they are beside hardware, not by ptrace.
  // Null: by ptrace.
  InputTapMaker make_tap;
  std::string plugin_path;  // of clew-qemu-plugin.so
  // With kStep and kTracer: the processes that the program makes are recorded,
  // too, and theirs, each as one that runs already is, until the program has
  // ended. The bundle is of the first that fails (ChooseFailure).
  bool with_children = false;
  // Of a child, by ChildRecorders: `process` as it was handed over, and what
  // says that the program has ended.
  std::optional<HandedOver> handed_over;
  std::atomic<bool>* is_over_for_children = nullptr;
  // For tests. The first is as PluginConfig::turns_path; the other one, with
  // kStep, may be null.
  std::string turns_path;
  BeforeInsn before_insn;
};

// An instruction that a run came to and that cannot be replayed.
struct UnknownInsn {
  CodeInsn insn;
  std::string place;  // "libfoo.so+0x1234"; empty: in no mapped file
};

struct RecordOutcome {
  Failure failure;
  bool kept = false;    // the bundle exists
  std::string dropped;  // why it has no trace; empty: it has
  uint64_t insns = 0;
  uint64_t handovers = 0;
  uint64_t switches = 0;
  uint64_t pt_bytes = 0;
  RingUse ring = {};
  uint64_t seed = 0;
  uint64_t stopped_ms = 0;  // for so long all of RecordOptions::process was
  // Calls and signals that are not known whole, with RecordOptions::make_tap.
  uint64_t inputs_unknown = 0;
  std::vector<std::string> deviations;  // common/linux/deviations.h
  // Of a run that is kept: each sequence of bytes once, by address.
  std::vector<UnknownInsn> unknown_insns;
  // Processes that the program started, that are in its group and still run.
  std::vector<pid_t> left;
  uint64_t ended_ns = 0;  // Outcome's
  // The process and command line of the child that this is of; 0, empty: of the
  // program.
  int32_t process = 0;
  std::string child = {};
  std::vector<std::string> unrecorded = {};  // children, and why, for people
};

// Runs the command and makes a bundle of the run, or attaches to a process that
// runs and makes one of what it does from then on, until it ends or `is_over`
// (FailureKind::kTimeLimit); it goes on unrecorded then. The program's
// stdin, stdout and stderr are those of the caller. The bundle is there whole
// or not at all, whatever ends the recorder.
//
// kInvalidArgument: an option is out of range, the output exists, the command
// is not there. kUnsupported: no x86-64 ELF program, or it did something that
// cannot be recorded (the message says what). kSystem: qemu-x86_64 or the
// plugin is missing, a process cannot be attached to, or the file system
// failed.
[[nodiscard]] Result<RecordOutcome> Record(const RecordOptions& options);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_RECORD_H_
