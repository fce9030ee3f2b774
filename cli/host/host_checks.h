#ifndef CLEW_CLI_HOST_HOST_CHECKS_H_
#define CLEW_CLI_HOST_HOST_CHECKS_H_

#include <string>
#include <vector>

#include "recorder/perf/selftest.h"

namespace clew::cli {

// One thing that clew may need of its host.
struct HostCheck {
  std::string name;  // "qemu-user"
  bool ok = false;
  bool required = false;    // software recording and replay need it
  std::string found = {};   // what is there: a version, a setting, "absent"
  std::string remedy = {};  // what to do where !ok; never empty then
};

// Where to look, so that a test can show another host.
struct HostRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// Looks at the host; starts qemu-x86_64, gdb and perf to ask their versions,
// traces /bin/true, and loads the BPF program of recorder/bpf for a moment.
// Changes nothing.
std::vector<HostCheck> CheckHost(const HostRoots& roots);

// Goes the way of a hardware recording, step by step: those of
// recorder/perf/selftest.h, and "decode", for which DecodeKnownLoop must find
// what was executed.
std::vector<recorder::perf::SelfTestStep> TestHardware(const HostRoots& roots);

// True if every required check is ok.
bool CanRecordInSoftware(const std::vector<HostCheck>& checks);

}  // namespace clew::cli

#endif  // CLEW_CLI_HOST_HOST_CHECKS_H_
