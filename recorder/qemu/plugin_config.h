#ifndef CLEW_RECORDER_QEMU_PLUGIN_CONFIG_H_
#define CLEW_RECORDER_QEMU_PLUGIN_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/fail_on.h"
#include "common/inputs.h"
#include "common/result.h"
#include "recorder/pt_encoder/encoder_config.h"
#include "recorder/qemu/scheduler.h"

// What the recorder and the plugin inside QEMU tell each other.

namespace clew::recorder {

// The recorder's wishes, in this environment variable of QEMU (the program does
// not get to see it) as lines "key=value".
inline constexpr const char* kPluginConfigVariable = "CLEW_RECORDING";

struct PluginConfig {
  std::string folder;  // absolute; raw files go below it
  SchedulerConfig scheduler;
  EncoderConfig encoder;
  uint64_t size_limit_bytes = 0;  // of all raw files (SizeLimit); 0: none
  uint32_t timeout_s = 0;  // of the program's time (ProgramTime); 0: no limit
  FailOn fail_on;
  bool core_on_exit =
      true;                 // write a core dump of a run that did not fail, too
  bool strict = false;      // a deviation (common/linux/deviations.h) ends it
  bool virtual_tsc = true;  // RDTSC reads the virtual clock
  // For tests: the true schedule goes here, a line "<thread> <tick>" for each
  // turn's start and "0 <tick>" for the end. Empty: nowhere.
  std::string turns_path;
};

std::string FormatPluginConfig(const PluginConfig& config);
[[nodiscard]] Result<PluginConfig> ParsePluginConfig(std::string_view text);

// Raw files, by name below PluginConfig::folder.
std::string RawPtPath(const std::string& folder, uint32_t core);
std::string RawInputsPath(const std::string& folder, Tid thread);
// Those that are there, of every thread, in a fixed order.
[[nodiscard]] Result<std::vector<std::string>> FindRawInputs(
    const std::string& folder);
// Removes them: before another program is recorded in their place.
[[nodiscard]] Status RemoveRawInputs(const std::string& folder);
std::string RawEventsPath(const std::string& folder);
std::string RawCodePath(const std::string& folder);
std::string CodeListPath(const std::string& folder);
std::string OutcomePath(const std::string& folder);
std::string StartPath(const std::string& folder);
std::string InputsPath(const std::string& folder);
std::string CorePath(const std::string& folder);
std::string RawFolder(const std::string& folder);

// Of a recording of which the end is kept (RecordOptions::ring_bytes).
struct RingUse {
  uint64_t halves = 0;          // that were begun in mid-run
  uint64_t stopped_us = 0;      // for all of them
  uint64_t stopped_us_max = 0;  // for one
  bool operator==(const RingUse&) const = default;
};

// How the recording ended; the plugin's last file, which is empty until then.
struct Outcome {
  Failure failure;
  // Why the recording was given up; empty if it is whole.
  std::string refusal;
  // Why there is neither trace nor inputs of it (SizeLimit); empty: they are.
  std::string dropped;
  bool has_core = false;
  uint64_t insns = 0;  // retired by all threads
  uint32_t cores = 0;  // virtual ones that there were in the end; 0: as wanted
  uint64_t handovers = 0;
  uint64_t switches = 0;
  RingUse ring = {};
  uint64_t inputs_unknown = 0;
  // When, by CLOCK_MONOTONIC: before anybody could see the end; 0: not known.
  uint64_t ended_ns = 0;
  bool registers_exact = true;  // in the core dump, of every thread
  std::vector<std::string> unlogged_inputs;  // as in bundle.proto
  std::vector<std::string> deviations;       // as there, too
};

std::string FormatOutcome(const Outcome& outcome);
[[nodiscard]] Result<Outcome> ParseOutcome(std::string_view text);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_CONFIG_H_
