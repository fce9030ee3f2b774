#ifndef CLEW_CLI_HARDWARE_COMMAND_H_
#define CLEW_CLI_HARDWARE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "common/result.h"
#include "recorder/hardware/input_thread.h"

namespace clew::cli {

inline constexpr const char* kCgroups = "/sys/fs/cgroup";

// The options of `clew record --source perf` as they were given.
struct HardwareOptions {
  std::vector<std::string> command;
  std::string output;
  std::string fail_on;
  std::optional<uint32_t> mtc_period;
  uint32_t timeout_s = 0;
  bool json = false;

  int32_t process = 0;
  std::string unit;
  std::string cgroup;
  bool whole_host = false;
  std::string buffer;
  std::optional<uint32_t> cyc_threshold;
  std::vector<std::string> filters;
  bool snapshot = false;
  bool sideband_only = false;
  bool inputs = false;
  std::string inputs_buffer;
  std::string inputs_rate;
};

// Adds those that no other source has, as a group of their own.
void AddHardwareOptions(Command& command, HardwareOptions& options);

// What --inputs and its kin say; nullopt without --inputs. kInvalidArgument:
// one of them is not what it has to be.
[[nodiscard]] Result<std::optional<recorder::InputsOptions>> ToInputsOptions(
    const HardwareOptions& given);

// True if an option of that group was given.
bool HasHardwareOptions(const Command& command);

// Records, reports, and returns the exit code.
[[nodiscard]] int RunHardware(const HardwareOptions& options);

}  // namespace clew::cli

#endif  // CLEW_CLI_HARDWARE_COMMAND_H_
