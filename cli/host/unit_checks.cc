#include "cli/host/unit_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

namespace clew::cli {
namespace {

constexpr const char* kUnit = "clewd.service";
constexpr const char* kClewd = "/usr/sbin/clewd";

// Settings of systemd.exec(5) and systemd.resource-control(5) that take
// something away from a process. Not those that make folders or name programs:
// they are the running clewd's.
constexpr std::array<std::string_view, 36> kRestrictions = {
    "User",
    "Group",
    "UMask",
    "NoNewPrivileges",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "SecureBits",
    "ProtectSystem",
    "ProtectHome",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProcSubset",
    "PrivateDevices",
    "PrivateIPC",
    "PrivateMounts",
    "PrivateNetwork",
    "PrivateTmp",
    "PrivateUsers",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "KeyringMode",
    "SystemCallArchitectures",
    "RestrictAddressFamilies",
    "SystemCallFilter",
    "SystemCallErrorNumber",
    "LimitMEMLOCK",
    "LimitNOFILE",
    "MemoryMax"};

// Value of "key=value" in what systemctl prints; empty: none.
std::string ValueOf(std::string_view shown, std::string_view key) {
  std::istringstream lines{std::string(shown)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) {
      return line.substr(key.size() + 1);
    }
  }
  return "";
}

HostCheck NotTried(std::string found, std::string remedy) {
  return {.name = "unit_sideband",
          .found = std::move(found),
          .remedy = std::move(remedy)};
}

// `why`: of clewd, empty if it can.
HostCheck Tried(const char* name, const std::string& why,
                const std::string& remedy) {
  return {.name = name,
          .ok = why.empty(),
          .found = why.empty() ? fmt::format("{} can open it", kUnit)
                               : fmt::format("{} cannot: {}", kUnit, why),
          .remedy = remedy};
}

std::vector<HostCheck> ChecksOf(const nlohmann::json& said) {
  const auto why = [&](const char* source) {
    return said.value(source, "clewd did not say; is it of another version?");
  };
  return {Tried("unit_sideband", why("sideband"),
                "the unit needs CAP_PERFMON, and on Debian with "
                "perf_event_paranoid above 2 CAP_SYS_ADMIN; 'systemctl cat "
                "clewd' shows which drop-in takes it away"),
          Tried("unit_perf", why("perf"),
                "source = perf cannot be used here; 'none' and 'sideband' do "
                "not need Intel PT")};
}

}  // namespace

std::vector<std::string> CommandInUnit(std::string_view shown) {
  std::vector<std::string> command = {"systemd-run", "--quiet", "--wait",
                                      "--pipe", "--collect"};
  for (const std::string_view key : kRestrictions) {
    const std::string value = ValueOf(shown, key);
    if (!value.empty()) {
      command.push_back(fmt::format("--property={}={}", key, value));
    }
  }
  command.insert(command.end(), {"--", kClewd, "--try-sources"});
  return command;
}

std::vector<HostCheck> CheckUnit(const RunFunction& run, bool root) {
  const auto shown = run({"systemctl", "show", kUnit});
  // In a chroot systemctl says nothing, with success.
  const std::string state = shown ? ValueOf(shown->text, "LoadState") : "";
  if (state.empty() || shown->exit_status != 0) {
    return {NotTried("systemd does not run here",
                     "clewd is not supervised; what it may was not tried")};
  }
  if (state != "loaded") {
    return {NotTried("clewd is not installed",
                     "on a host in production: apt install ./clewd_*.deb")};
  }
  if (!root) {
    return {NotTried("not tried",
                     "what clewd may do only root can try: "
                     "sudo clew doctor")};
  }
  const auto tried = run(CommandInUnit(shown->text));
  const auto said = nlohmann::json::parse(tried ? tried->text : "", nullptr,
                                          /*allow_exceptions=*/false);
  if (!said.is_object()) {
    const int status = tried ? tried->exit_status : -1;
    return {NotTried(
        fmt::format("clewd could not be tried, exit status {}", status),
        "'clewd --check-config /etc/clew/clewd.conf', 'systemctl status "
        "clewd'")};
  }
  return ChecksOf(said);
}

}  // namespace clew::cli
