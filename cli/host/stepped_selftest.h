#ifndef CLEW_CLI_HOST_STEPPED_SELFTEST_H_
#define CLEW_CLI_HOST_STEPPED_SELFTEST_H_

#include <functional>
#include <string>
#include <vector>

#include "cli/run_program.h"
#include "recorder/perf/selftest.h"

namespace clew::cli {

struct SteppedSelfTestFiles {
  std::string clew;    // the program that is tested
  std::string race;    // a program that fails in some of its interleavings
  std::string folder;  // for the bundle, "<folder>/race.clew"
};

// Goes the way of every bundle, from a failure on this host's CPU to its
// replay, with the commands that a user would type. Always all of these steps,
// in this order, each told as it ends:
//
//   step record   `clew record --source step` until the race is lost
//   step decode   the trace has no gap
//   step solve    an interleaving is found that ends as the recorded one
//   step replay   five replays end so
//
// Takes some seconds. `run` runs the commands.
std::vector<recorder::perf::SelfTestStep> TestStepped(
    const RunFunction& run, const SteppedSelfTestFiles& files,
    const std::function<void(const recorder::perf::SelfTestStep&)>& tell);

}  // namespace clew::cli

#endif  // CLEW_CLI_HOST_STEPPED_SELFTEST_H_
