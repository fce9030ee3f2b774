#ifndef CLEW_RECORDER_QEMU_CALLS_EXEC_CALL_H_
#define CLEW_RECORDER_QEMU_CALLS_EXEC_CALL_H_

#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// What execve(2) is asked to run.
struct ExecCall {
  std::string path = {};
  std::vector<std::string> arguments = {};
  std::vector<std::string> environment = {};
};

// Reads the call's arguments, each as far as it is readable.
ExecCall ReadExecCall(uint64_t path, uint64_t arguments, uint64_t environment,
                      const GuestMemory& memory);

// Returns the program that the kernel will run: for a script, its interpreter.
// Fails with kInvalidArgument if the kernel will refuse the call, and with
// kUnsupported if it is not an x86-64 program.
[[nodiscard]] Result<ExecCall> ResolveScripts(ExecCall call);

// The command line of a QEMU that runs `call` as the QEMU with the command line
// `own` runs its program: options up to that of the plugin, then the program.
std::vector<std::string> QemuCommandLine(const std::vector<std::string>& own,
                                         const ExecCall& call);

// `call`'s environment with LD_PRELOAD and `session` as QEMU wants them.
std::vector<std::string> QemuEnvironment(const ExecCall& call,
                                         const std::string& preload,
                                         const std::string& session);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_EXEC_CALL_H_
