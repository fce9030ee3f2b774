#include "cli/host/host_checks.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "cli/run_program.h"
#include "common/os/ptrace.h"
#include "recorder/selftest/known_loop.h"
#ifdef CLEW_RECORDER_BPF
#include "recorder/bpf/input_source.h"
#endif
#include "recorder/perf/pmu.h"
#include "recorder/perf/sysfs.h"
#include "recorder/software/plugin_file.h"

namespace clew::cli {
namespace {

using recorder::perf::FirstLine;

constexpr const char* kAnyProgram = "/bin/true";
constexpr int kCapPerfmon = 38;  // linux/capability.h, CAP_PERFMON
constexpr int kCapSysAdmin = 21;
// perf_event_open(2), /proc/sys/kernel/perf_event_paranoid.
constexpr int kParanoidMaxForCpus = 0;
constexpr int kParanoidMaxForThreads = 2;
// Above it Debian's kernel asks for CAP_SYS_ADMIN (docs/design/production.md).
constexpr int kParanoidMaxForPerfmon = 2;

HostCheck CheckKernel() {
  utsname name = {};
  uname(&name);
  return {.name = "kernel",
          .ok = std::string_view(name.machine) == "x86_64",
          .required = true,
          .found =
              fmt::format("{} {} {}", name.sysname, name.release, name.machine),
          .remedy = "clew runs on Linux on x86-64 only"};
}

std::string DescribePmu(const recorder::perf::Pmu& pmu) {
  const auto has = [&](const char* capability) {
    return pmu.capability(capability) != 0 ? "yes" : "no";
  };
  return fmt::format("type {}, MTC {}, CYC {}, {} address filters", pmu.type(),
                     has("mtc"), has("psb_cyc"), pmu.address_filters_max());
}

HostCheck CheckIntelPt(const HostRoots& roots) {
  const auto pmu = recorder::perf::Pmu::Discover(roots.sys);
  const bool absent = !pmu && pmu.error().code == ErrorCode::kUnsupported;
  return {.name = "intel_pt",
          .ok = pmu.has_value(),
          .found = pmu      ? DescribePmu(*pmu)
                   : absent ? "absent"
                            : pmu.error().message,
          .remedy =
              "this CPU or virtual machine does not offer Intel PT; "
              "software recording, decode, solve and replay work"};
}

// Bit `capability` of the effective set of this process.
bool HasCapability(const HostRoots& roots, int capability) {
  std::ifstream file(roots.proc + "/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("CapEff:")) {
      const uint64_t set = std::strtoull(line.c_str() + 7, nullptr, 16);
      return (set >> capability & 1) != 0;
    }
  }
  return false;
}

HostCheck CheckPerfPermission(const HostRoots& roots) {
  const auto text = FirstLine(roots.proc + "/sys/kernel/perf_event_paranoid");
  const int level = text ? std::atoi(text->c_str()) : 99;
  const bool administration = level > kParanoidMaxForPerfmon;
  const bool capable = HasCapability(roots, kCapSysAdmin) ||
                       (!administration && HasCapability(roots, kCapPerfmon));
  const bool cpus = text && (level <= kParanoidMaxForCpus || capable);
  const bool threads = text && (level <= kParanoidMaxForThreads || capable);
  return {.name = "perf_event",
          .ok = cpus,
          .found = fmt::format(
              "perf_event_paranoid {}, {} {}: own threads {}, whole CPUs and "
              "cgroups {}",
              text.value_or("absent"),
              administration ? "CAP_SYS_ADMIN" : "CAP_PERFMON",
              capable ? "held" : "not held", threads ? "yes" : "no",
              cpus ? "yes" : "no"),
          .remedy =
              "'sysctl kernel.perf_event_paranoid=0' or CAP_PERFMON (Debian "
              "above 2: CAP_SYS_ADMIN) for whole CPUs and cgroups; 2 or less "
              "is enough for own threads"};
}

HostCheck CheckBpf(const HostRoots& roots) {
  HostCheck check = {.name = "bpf_inputs"};
#ifdef CLEW_RECORDER_BPF
  if (access((roots.sys + "/kernel/btf/vmlinux").c_str(), R_OK) != 0) {
    check.found = "the kernel has no BTF";
    check.remedy =
        "hardware recordings have no inputs; they need a kernel with "
        "CONFIG_DEBUG_INFO_BTF, as Debian's are";
    return check;
  }
  const Status status = recorder::bpf::ProbeInputs();
  check.ok = status.has_value();
  check.found = check.ok ? "system calls can be watched" : "not possible";
  check.remedy = check.ok ? "" : status.error().message;
#else
  (void)roots;
  check.found = "left out of this build";
  check.remedy =
      "hardware recordings have no inputs; to have them, install clang, "
      "bpftool and libbpf-dev and build again";
#endif
  return check;
}

HostCheck CheckPtrace(const HostRoots& roots) {
  const auto text = FirstLine(roots.proc + "/sys/kernel/yama/ptrace_scope");
  HostCheck check = {
      .name = "ptrace",
      .required = true,
      .found = text ? "yama ptrace_scope " + *text : "not restricted",
      .remedy =
          "allow ptrace(2) (ptrace_scope 3 holds until the next boot), or "
          "record with '--source qemu'"};
  if (text && *text == "3") {
    return check;
  }
  const auto traced = TracedProcess::Start({.program = kAnyProgram,
                                            .arguments = {kAnyProgram},
                                            .environment = {},
                                            .host_cpu = std::nullopt,
                                            .prepare = nullptr});
  check.ok = traced.has_value();
  if (!check.ok) {
    check.found += ", " + traced.error().message;
  }
  return check;
}

HostCheck CheckCorePattern(const HostRoots& roots) {
  const auto text = FirstLine(roots.proc + "/sys/kernel/core_pattern");
  return {.name = "core_pattern",
          .ok = text.has_value(),
          .found = text.value_or("absent"),
          .remedy = "clew writes its own core dumps and does not need it"};
}

// A tool on PATH that prints its version on its first line.
HostCheck CheckTool(const std::string& name, const std::string& program,
                    bool required, const std::string& remedy) {
  HostCheck check{.name = name, .required = required, .remedy = remedy};
  const auto output = RunProgram({program, "--version"});
  check.ok = output && output->exit_status == 0;
  check.found = check.ok ? output->text.substr(0, output->text.find('\n'))
                         : "absent or broken";
  return check;
}

HostCheck CheckQemu() {
  HostCheck check =
      CheckTool("qemu-user", "qemu-x86_64", /*required=*/false,
                "for 'clew record --source qemu': apt-get install qemu-user "
                "(Debian 12 has 7.2)");
  if (check.ok && check.found.find("version 7.2") == std::string::npos) {
    check.found += " (only 7.2 was ever tested)";
  }
  return check;
}

HostCheck CheckPlugin() {
  HostCheck check{.name = "plugin",
                  .remedy =
                      "for 'clew record --source qemu': build the target "
                      "clew-qemu-plugin, or set CLEW_PLUGIN to its path"};
  const auto found = recorder::FindPlugin();
  check.ok = found.has_value();
  check.found = found ? *found
                      : fmt::format("not in {}",
                                    fmt::join(recorder::PluginPlaces(), ", "));
  return check;
}

}  // namespace

std::vector<HostCheck> CheckHost(const HostRoots& roots) {
  return {CheckKernel(),
          CheckPtrace(roots),
          CheckTool("gdb", "gdb", /*required=*/true,
                    "install it: apt-get install gdb"),
          CheckQemu(),
          CheckPlugin(),
          CheckIntelPt(roots),
          CheckPerfPermission(roots),
          CheckBpf(roots),
          CheckTool("perf", "perf", /*required=*/false,
                    "only to look at traces by hand: apt-get install "
                    "linux-perf"),
          CheckCorePattern(roots)};
}

std::vector<recorder::perf::SelfTestStep> TestHardware(const HostRoots& roots) {
  using recorder::perf::StepOutcome;
  auto& kernel = recorder::perf::RealPerfKernel();
  auto steps = recorder::perf::RunSelfTest(kernel, roots.sys, roots.proc);
  recorder::perf::SelfTestStep decode{.name = "decode",
                                      .outcome = StepOutcome::kNotRun,
                                      .detail = "needs pt trace"};
  const bool has_pt = std::ranges::any_of(steps, [](const auto& step) {
    return step.name == "pt trace" && step.outcome == StepOutcome::kPassed;
  });
  if (has_pt) {
    const auto seen = recorder::DecodeKnownLoop(kernel, roots.sys, roots.proc);
    decode.outcome = seen ? StepOutcome::kPassed : StepOutcome::kFailed;
    decode.detail = seen ? *seen : seen.error().message;
  }
  steps.push_back(std::move(decode));
  return steps;
}

bool CanRecordInSoftware(const std::vector<HostCheck>& checks) {
  return std::ranges::all_of(checks, [](const HostCheck& check) {
    return check.ok || !check.required;
  });
}

}  // namespace clew::cli
