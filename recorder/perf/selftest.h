#ifndef CLEW_RECORDER_PERF_SELFTEST_H_
#define CLEW_RECORDER_PERF_SELFTEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "recorder/perf/kernel.h"

namespace clew::recorder::perf {

enum class StepOutcome : uint8_t {
  kPassed,
  kFailed,
  kNotRun,  // an earlier step failed that it needs
};

struct SelfTestStep {
  std::string name;
  StepOutcome outcome = StepOutcome::kNotRun;
  std::string detail;  // what was seen, or what is missing
};

// Goes the way of a hardware recording with the calling thread as the program,
// always all of these steps, in this order:
//
//   pmu                the kernel describes intel_pt
//   sideband           its events open on every CPU, and its rings map
//   switch records     as many as the thread slept
//   sideband snapshot  of an overwritten ring
//   clock              perf's clock converts to the TSC
//   pt                 PT events open on every CPU, data and AUX rings map
//   pt trace           a loop makes trace bytes that contain a PSB
//   pt snapshot        the same from an overwritten AUX ring
//
// The bytes are not decoded. Takes a tenth of a second. `sys` and `proc` are
// where those file systems are mounted.
std::vector<SelfTestStep> RunSelfTest(PerfKernel& kernel,
                                      const std::string& sys,
                                      const std::string& proc);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_SELFTEST_H_
