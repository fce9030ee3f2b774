#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/subcommands.h"

namespace clew::cli {
namespace {

constexpr const char* kVersionFooter = R"(Example:
  clew version --json
)";

// CLEW_VERSION and CLEW_BUILD_TYPE come from CMake, CLEW_RECORDER_BPF with
// recorder/bpf.
#ifdef CLEW_RECORDER_BPF
constexpr bool kHasBpf = true;
#else
constexpr bool kHasBpf = false;
#endif

Json DescribeBuild() {
  return {{"version", CLEW_VERSION},
          {"compiler", __VERSION__},
          {"build_type", CLEW_BUILD_TYPE},
          {"bundle_format", 1},
          {"bpf_inputs", kHasBpf}};
}

int RunVersion(bool json) {
  if (json) {
    PrintJson(DescribeBuild());
  } else {
    fmt::print("clew {} ({}, {})\n", CLEW_VERSION, CLEW_BUILD_TYPE,
               __VERSION__);
    if (!kHasBpf) {
      fmt::print("left out: inputs by eBPF\n");
    }
  }
  return kExitOk;
}

}  // namespace

void AddVersion(Command& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  Command* command =
      app.add_subcommand("version", "print the version and how it was built");
  command->add_flag("--json", *json, "print JSON");
  command->footer(kVersionFooter);
  command->callback([=, &exit_code] { exit_code = RunVersion(*json); });
}

}  // namespace clew::cli
