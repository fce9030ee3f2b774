#ifndef CLEW_RECORDER_SOFTWARE_LAUNCH_H_
#define CLEW_RECORDER_SOFTWARE_LAUNCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/manifest/manifest.h"
#include "common/result.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/software/program_group.h"

namespace clew::recorder {

// The CPU that the program sees: x86-64-v2, which is what the machine knows.
inline constexpr const char* kGuestCpu = "Nehalem";

struct Launch {
  std::vector<std::string> command;
  bundle::Surroundings surroundings;
  std::string plugin;
  PluginConfig config;
};

// kInvalidArgument: the kernel would not run the program, or the working
// directory is not there. kUnsupported: it, or the interpreter of a script, is
// no x86-64 program.
[[nodiscard]] Status CheckProgram(const bundle::Surroundings& surroundings);
// Returns the file that the kernel would run, a script's interpreter. Fails as
// CheckProgram does.
[[nodiscard]] Result<std::string> ProgramOf(
    const bundle::Surroundings& surroundings);

// Runs it in `group` to its end and returns the wait status. The child dies
// with the recorder. kUnsupported: there is no qemu-x86_64 in the PATH of the
// program's environment.
[[nodiscard]] Result<int> RunUnderQemu(const Launch& launch,
                                       ProgramGroup& group);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_LAUNCH_H_
